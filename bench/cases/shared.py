"""Large tensors in system shared memory: no tensor crosses the socket."""

import functools
import itertools
from collections.abc import Sequence

from cases.case import Case
from load import with_cost
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_ELEMENTS = 150_000
_IDENTITY = {"identity": "", "identity_on_loop": ", on the event loop"}
"""The same model code twice, and what distinguishes its rows."""
_OPTIONS = ("--shape", f"INPUT0:{_ELEMENTS}", "--shared-memory", "system", "--output-shared-memory-size")


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        ports = {"http": running.ports.http, "grpc": running.ports.grpc}
        for (model, message), (protocol, port) in itertools.product(_IDENTITY.items(), ports.items()):
            options = (*_OPTIONS, str(4 * _ELEMENTS))
            measure = functools.partial(run.generator, port, model, 8, options, protocol=protocol)
            load, cost = with_cost(running, model, measure)
            label = f"{protocol.upper()}, 600 KB, concurrency 8{message}"
            numbers[f"{label}: inferences/s"] = load.per_second
            numbers[f"{label}: p99, ms"] = load.p99_milliseconds
            numbers[f"{label}: server's processor time, µs each"] = cost
        return numbers

    seen = side_by_side(run, once, options=("--allow-client-shm=true", "--shared-memory-lending=true"))
    labels = [
        f"{protocol}, 600 KB, concurrency 8{message}: inferences/s"
        for protocol in ("HTTP", "GRPC")
        for message in _IDENTITY.values()
    ]
    return seen.rows({label: Goal(least=2, of_ratio=True) for label in labels})


CASE = Case(
    "shm",
    "System shared memory",
    "The identity model with its input and its output in system shared memory, 150,000 FP32 elements each. "
    "The rows 'on the event loop' are the same code, configured with `execute_on: event_loop`. "
    "Naiad runs with `--shared-memory-lending`.",
    measure,
)
