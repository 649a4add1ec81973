"""Small binary tensors over HTTP: what a request costs the server itself."""

import functools
from collections.abc import Sequence

from cases.case import ADD_SUB, Case
from load import measured
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_GOALS = {1: 1.9, 16: 1.5, 64: 1.5}
"""The ratio of inferences/s to reach, by concurrency."""
_MOST_MICROSECONDS = 35
"""The processor time of the server for a request, at concurrency 16."""


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for model, message in ADD_SUB.items():
            for concurrency in _GOALS:
                measure = functools.partial(run.generator, running.port, model, concurrency)
                numbers |= measured(running, model, f"concurrency {concurrency}{message}", measure)
        return numbers

    seen = side_by_side(run, once)
    goals = {"concurrency 16: server's processor time, µs each": Goal(most=_MOST_MICROSECONDS)}
    for message in ADD_SUB.values():
        for concurrency, least in _GOALS.items():
            goals[f"concurrency {concurrency}{message}: inferences/s"] = Goal(least=least, of_ratio=True)
            goals[f"concurrency {concurrency}{message}: p99, ms"] = Goal(most=1, of_ratio=True)
    return seen.rows(goals)


CASE = Case(
    "binary",
    "HTTP, small binary tensors",
    "The add/sub `TritonPythonModel`, two FP32[16] inputs and outputs, `max_batch_size: 64`, `dynamic_batching {}`; "
    "perf_analyzer with one request a connection. The rows 'on the event loop' are the same code, configured with "
    "`execute_on: event_loop`, which Naiad alone understands.",
    measure,
)
