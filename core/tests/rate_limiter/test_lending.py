"""An execution that waits for other models: what it lends, and when it gets which answer."""

from naiad._kernel.answers import Outcome
from naiad._kernel.rate_limiter.lending import LendingSink
from naiad._kernel.rate_limiter.rests import Rest, Visit
from naiad.types import Response


class Taken:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def put(self, outcome: Outcome) -> None:
        assert isinstance(outcome, Response)
        self.ids.append(outcome.id)


class Place:
    """An execution whose turn to go on is the test's to give; `wants` is how often it asked for it."""

    def __init__(self) -> None:
        self.visit = Visit()
        self.wants = 0

    def rest(self) -> Rest:
        return Rest(self.visit, self._want)

    def _want(self) -> None:
        self.wants += 1


def response(name: str) -> Response:
    return Response("m", 1, name, {})


def test_an_answer_is_passed_on_when_the_caller_holds_again_what_it_lent() -> None:
    place, taken = Place(), Taken()
    sink = LendingSink(taken, place.rest)
    sink.wait()

    sink.put(response("a"))

    assert (place.wants, taken.ids) == (1, [])
    place.visit.end()
    assert taken.ids == ["a"]


def test_what_comes_meanwhile_stays_behind_it() -> None:
    place, taken = Place(), Taken()
    sink = LendingSink(taken, place.rest)
    sink.wait()
    for name in "abc":
        sink.put(response(name))

    place.visit.end()
    sink.put(response("d"))

    assert (place.wants, taken.ids) == (1, ["a", "b", "c", "d"])


def test_an_execution_with_several_calls_out_goes_on_when_all_are_answered() -> None:
    place, taken = Place(), Taken()
    sinks = [LendingSink(taken, place.rest) for _ in range(3)]
    for sink in sinks:
        sink.wait()

    sinks[2].put(response("third"))
    sinks[0].put(response("first"))
    assert place.wants == 0
    sinks[1].put(response("second"))

    assert place.wants == 1
    place.visit.end()
    assert taken.ids == ["third", "first", "second"]


def test_a_caller_that_does_not_wait_gets_its_answer_at_once() -> None:
    place, taken = Place(), Taken()
    sink = LendingSink(taken, place.rest)

    sink.put(response("a"))

    assert (place.wants, taken.ids) == (0, ["a"])


def test_a_call_that_is_taken_back_lets_its_caller_go_on() -> None:
    place, taken = Place(), Taken()
    sink = LendingSink(taken, place.rest)
    sink.wait()

    sink.end()
    sink.end()

    assert place.wants == 1
    place.visit.end()
    sink.wait()
    assert place.visit.calls_out == 1


def test_an_execution_that_is_over_waits_for_nothing() -> None:
    place, taken = Place(), Taken()
    sink = LendingSink(taken, place.rest)
    sink.wait()
    place.visit.end()

    sink.put(response("late"))

    assert (place.wants, taken.ids) == (0, ["late"])
