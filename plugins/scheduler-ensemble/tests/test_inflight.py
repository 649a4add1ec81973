"""`max_inflight_requests`: a step takes so many requests, and the others in the order in which they came."""

from naiad_scheduler_ensemble.inflight import Inflight

from .conftest import Compose, model


def test_a_step_takes_as_many_as_it_may() -> None:
    inflight = Inflight(2, 1)

    assert [inflight.enter(0, name) for name in "abc"] == [True, True, False]


def test_each_step_has_room_of_its_own() -> None:
    inflight = Inflight(1, 2)

    assert [inflight.enter(0, "a"), inflight.enter(1, "b")] == [True, True]


def test_who_leaves_makes_room_for_the_one_that_waits_longest() -> None:
    inflight = Inflight(1, 1)
    for name in "abc":
        inflight.enter(0, name)

    assert [inflight.leave(0) for _ in range(3)] == ["b", "c", None]
    assert inflight.enter(0, "d")


def test_who_does_not_wait_any_more_is_passed_over() -> None:
    inflight = Inflight(1, 1)
    for name in "abc":
        inflight.enter(0, name)

    inflight.forget(0, "b")

    assert inflight.leave(0) == "c"


def test_without_a_limit_nothing_is_counted(compose: Compose) -> None:
    one = (model("x", "y"), "x=A", "y=B")

    assert compose("A", "B", one).backpressure() is None
    assert compose("A", "B", one, scheduling="max_inflight_requests: 3").backpressure() is not None
