"""The work for a response of a decoupled step does not depend on how many others are under way."""

import sys
from collections.abc import Callable
from types import FrameType

from naiad_scheduler_ensemble.run import Run

from .conftest import Compose, model
from .runs import answer, values

ONE = model("x", "y")
STREAM = model("x", "y", name="stream", decoupled=True)
JOIN = model("a b", "y", name="join")


def calls_of(work: Callable[[], None]) -> int:
    """How many functions and methods, built-in ones included, the work calls."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_responses_that_gather_while_the_next_step_is_slow_cost_the_same_each(compose: Compose) -> None:
    ensemble = compose("A", "C", (STREAM, "x=A", "y=B"), (ONE, "x=B", "y=C"))

    def run_with(responses: int) -> None:
        run = ensemble.run(values("A"), ())
        (stream,) = run.begin().starts
        waiting = []
        for _ in range(responses):
            waiting.extend(answer(run, stream, "y", final=False).starts)
        answer(run, stream)
        for start in reversed(waiting):
            answer(run, start, "y")

    few, many = calls_of(lambda: run_with(100)), calls_of(lambda: run_with(400))

    assert many < 4.5 * few


def test_iterations_that_end_are_forgotten_with_all_that_knows_them(compose: Compose) -> None:
    ensemble = compose("A", "D", (STREAM, "x=A", "y=B"), (STREAM, "x=B", "y=C"), (ONE, "x=C", "y=D"))
    run = ensemble.run(values("A"), ())
    assert isinstance(run, Run)
    (outer,) = run.begin().starts

    for _ in range(3):
        (inner,) = answer(run, outer, "y", final=False).starts
        for _ in range(3):
            (last,) = answer(run, inner, "y", final=False).starts
            answer(run, last, "y")
        answer(run, inner)

    assert (len(run._open), run._inner) == (1, {})


def test_an_iteration_opened_within_one_that_has_ended_hears_of_what_settles_around_both(compose: Compose) -> None:
    steps = (STREAM, "x=A", "y=B"), (STREAM, "x=B", "y=C"), (ONE, "x=A", "y=S"), (JOIN, "a=C b=S", "y=D")
    run = compose("A", "D", *steps).run(values("A"), ())
    outer, slow = run.begin().starts

    (inner,) = answer(run, outer, "y").starts
    before = answer(run, inner, "y")
    after = answer(run, slow, "y")
    last = answer(run, after.starts[0], "y")

    assert (before.starts, [start.step for start in after.starts]) == ([], [3])
    assert len(last.responses) == 1
