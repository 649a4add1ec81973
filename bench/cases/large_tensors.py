"""Large binary tensors over HTTP and gRPC: how often a body is copied on its way in and out."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from cases.case import Case
from load import with_cost
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running


@dataclass(frozen=True, slots=True)
class Size:
    """A size of the tensors, how many clients send them, and the ratios of inferences/s to reach by protocol."""

    label: str
    elements: int
    concurrency: int
    least: dict[str, float]


SIZES = (
    Size("600 KB, concurrency 8", 150_000, 8, {"http": 1.6, "grpc": 1.8}),
    Size("4 MB, concurrency 4", 1_000_000, 4, {"http": 1.3, "grpc": 1.6}),
)


def measure(protocol: str, run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        port = running.ports.http if protocol == "http" else running.ports.grpc
        for size in SIZES:
            options = ["--shape", f"INPUT0:{size.elements}"]
            measure = functools.partial(run.generator, port, "identity", size.concurrency, options, protocol=protocol)
            load, cost = with_cost(running, "identity", measure)
            numbers[f"{size.label}: inferences/s"] = load.per_second
            numbers[f"{size.label}: p99, ms"] = load.p99_milliseconds
            numbers[f"{size.label}: server's processor time, µs each"] = cost
        return numbers

    seen = side_by_side(run, once)
    return seen.rows({f"{size.label}: inferences/s": Goal(least=size.least[protocol], of_ratio=True) for size in SIZES})


def _case(name: str, title: str, protocol: str) -> Case:
    return Case(
        name,
        f"{title}, large binary tensors",
        "An identity `TritonPythonModel`, one FP32 input of 150,000 or 1,000,000 elements, answered as it came.",
        functools.partial(measure, protocol),
    )


CASES = (_case("large", "HTTP", "http"), _case("grpc-large", "gRPC", "grpc"))
