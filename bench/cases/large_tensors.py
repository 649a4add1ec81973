"""Large binary tensors over HTTP: how often a body is copied on its way in and out."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from cases.case import Case
from load import with_cost
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running


@dataclass(frozen=True, slots=True)
class _Size:
    label: str
    elements: int
    concurrency: int
    least: float


_SIZES = (_Size("600 KB, concurrency 8", 150_000, 8, 1.6), _Size("4 MB, concurrency 4", 1_000_000, 4, 1.3))


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for size in _SIZES:
            options = ["--shape", f"INPUT0:{size.elements}"]
            measure = functools.partial(run.generator, running.port, "identity", size.concurrency, options)
            load, cost = with_cost(running, "identity", measure)
            numbers[f"{size.label}: inferences/s"] = load.per_second
            numbers[f"{size.label}: p99, ms"] = load.p99_milliseconds
            numbers[f"{size.label}: server's processor time, µs each"] = cost
        return numbers

    seen = side_by_side(run, once)
    return seen.rows({f"{size.label}: inferences/s": Goal(least=size.least, of_ratio=True) for size in _SIZES})


CASE = Case(
    "large",
    "HTTP, large binary tensors",
    "An identity `TritonPythonModel`, one FP32 input of 150,000 or 1,000,000 elements, answered as it came.",
    measure,
)
