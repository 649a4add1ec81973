"""Large binary tensors over HTTP: how often a body is copied on its way in and out."""

from collections.abc import Sequence
from dataclasses import dataclass

from cases.case import Case
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running


@dataclass(frozen=True, slots=True)
class _Size:
    label: str
    elements: int
    concurrency: int
    least: float


_SIZES = (_Size("600 KB", 150_000, 8, 1.6), _Size("4 MB", 1_000_000, 4, 1.3))


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for size in _SIZES:
            options = ["--shape", f"INPUT0:{size.elements}"]
            load = run.generator(running.port, "identity", size.concurrency, options)
            numbers[f"{size.label}, concurrency {size.concurrency}: inferences/s"] = load.per_second
            numbers[f"{size.label}, concurrency {size.concurrency}: p99, ms"] = load.p99_milliseconds
        return numbers

    seen = side_by_side(run, once)
    rows = []
    for size in _SIZES:
        for what, goal in (("inferences/s", Goal(least=size.least, of_ratio=True)), ("p99, ms", None)):
            label = f"{size.label}, concurrency {size.concurrency}: {what}"
            rows.append(Row(label, seen.naiad[label], seen.peer.get(label, ()), goal))
    return rows


CASE = Case(
    "large",
    "HTTP, large binary tensors",
    "An identity `TritonPythonModel`, one FP32 input of 150,000 or 1,000,000 elements, answered as it came.",
    measure,
)
