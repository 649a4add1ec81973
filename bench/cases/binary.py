"""Small binary tensors over HTTP: what a request costs the server itself."""

import functools
from collections.abc import Sequence

from cases.case import Case
from load import with_cost
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_GOALS = {1: 1.9, 16: 1.5, 64: 1.5}
"""The ratio of inferences/s to reach, by concurrency."""


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for concurrency in _GOALS:
            measure = functools.partial(run.generator, running.port, "add_sub", concurrency)
            load, cost = with_cost(running, "add_sub", measure)
            numbers[f"concurrency {concurrency}: inferences/s"] = load.per_second
            numbers[f"concurrency {concurrency}: p99, ms"] = load.p99_milliseconds
            numbers[f"concurrency {concurrency}: server's processor time, µs each"] = cost
        return numbers

    seen = side_by_side(run, once)
    goals = {}
    for concurrency, least in _GOALS.items():
        goals[f"concurrency {concurrency}: inferences/s"] = Goal(least=least, of_ratio=True)
        goals[f"concurrency {concurrency}: p99, ms"] = Goal(most=1, of_ratio=True)
    return seen.rows(goals)


CASE = Case(
    "binary",
    "HTTP, small binary tensors",
    "The add/sub `TritonPythonModel`, two FP32[16] inputs and outputs, `max_batch_size: 64`, `dynamic_batching {}`; "
    "perf_analyzer with one request a connection.",
    measure,
)
