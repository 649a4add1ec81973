"""Large tensors in system shared memory: no tensor crosses the socket."""

import functools
from collections.abc import Sequence

from cases.case import Case
from load import with_cost
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_ELEMENTS = 150_000
_OPTIONS = ("--shape", f"INPUT0:{_ELEMENTS}", "--shared-memory", "system", "--output-shared-memory-size")


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for protocol, port in (("http", running.ports.http), ("grpc", running.ports.grpc)):
            options = (*_OPTIONS, str(4 * _ELEMENTS))
            measure = functools.partial(run.generator, port, "identity", 8, options, protocol=protocol)
            load, cost = with_cost(running, "identity", measure)
            label = f"{protocol.upper()}, 600 KB, concurrency 8"
            numbers[f"{label}: inferences/s"] = load.per_second
            numbers[f"{label}: p99, ms"] = load.p99_milliseconds
            numbers[f"{label}: server's processor time, µs each"] = cost
        return numbers

    seen = side_by_side(run, once, options=("--allow-client-shm=true",))
    return seen.rows({"HTTP, 600 KB, concurrency 8: inferences/s": Goal(least=2, of_ratio=True)})


CASE = Case(
    "shm",
    "System shared memory",
    "The identity model with its input and its output in system shared memory, 150,000 FP32 elements each.",
    measure,
)
