"""An execution that waits for other models: when it goes on, and with which answers."""

from naiad._kernel.rate_limiter.rests import Rest, Visit


class Execution:
    """One that waits; `wants` is how often it asked to go on, `told` the answers it went on with."""

    def __init__(self) -> None:
        self.visit = Visit()
        self.wants = 0
        self.told: list[str] = []

    def rest(self) -> Rest:
        return Rest(self.visit, self._want)

    def answer(self, rest: Rest, name: str) -> None:
        rest.over(lambda: self.told.append(name))

    def _want(self) -> None:
        self.wants += 1


def test_an_answer_is_passed_on_when_the_execution_holds_again_what_it_lent() -> None:
    execution = Execution()
    rest = execution.rest()

    execution.answer(rest, "a")
    before = list(execution.told)
    execution.visit.end()

    assert (execution.wants, before, execution.told) == (1, [], ["a"])


def test_one_with_several_calls_out_goes_on_when_all_are_answered() -> None:
    execution = Execution()
    first, second, third = execution.rest(), execution.rest(), execution.rest()

    execution.answer(third, "third")
    execution.answer(first, "first")
    asked = execution.wants
    execution.answer(second, "second")
    execution.visit.end()

    assert (asked, execution.wants) == (0, 1)
    assert execution.told == ["third", "first", "second"]


def test_what_is_answered_after_an_execution_is_passed_on_at_once() -> None:
    execution = Execution()
    rest = execution.rest()
    execution.visit.end()

    execution.answer(rest, "late")

    assert (execution.wants, execution.told) == (0, ["late"])
