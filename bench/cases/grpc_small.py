"""Small binary tensors over gRPC: what a request costs the server."""

import functools
from collections.abc import Sequence

from cases.case import Case
from load import measured
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

GOALS = {1: 2.0, 16: 2.2, 64: 2.1}
"""The ratio of inferences/s to reach, by concurrency."""
_MOST_MICROSECONDS = 45
"""The processor time of the server for a call, at concurrency 16."""


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for concurrency in GOALS:
            measure = functools.partial(
                run.generator, running.ports.grpc, "add_sub", concurrency, ("--max-threads", "8"), protocol="grpc"
            )
            numbers |= measured(running, "add_sub", f"concurrency {concurrency}", measure)
        return numbers

    goals = {"concurrency 16: server's processor time, µs each": Goal(most=_MOST_MICROSECONDS)}
    for concurrency, least in GOALS.items():
        goals[f"concurrency {concurrency}: inferences/s"] = Goal(least=least, of_ratio=True)
        goals[f"concurrency {concurrency}: p99, ms"] = Goal(most=1, of_ratio=True)
    return side_by_side(run, once).rows(goals)


CASE = Case(
    "grpc",
    "gRPC, small binary tensors",
    "The add/sub `TritonPythonModel` and the load of `binary` over gRPC.",
    measure,
)
