"""Models whose workers die, and a gate before their replacements."""

import threading
from pathlib import Path

from naiad import Server
from naiad.backend import Answer, Batch, Placement
from naiad_testing.in_loop import FLOATS, write_model
from naiad_testing.steered import Steered, SteeredInstance

DEADLY = 666.0


def dies_of_666(batch: Batch) -> Answer:
    if batch.input("INPUT")[0] == DEADLY:
        raise SystemExit("the model left")
    return {"OUTPUT": batch.input("INPUT")}


def states(server: Server) -> list[str]:
    return [report.state for report in server.instances("m")]


class Gate:
    """Makes instances, one by one as the test allows it."""

    def __init__(self, backend: Steered) -> None:
        self.make = lambda: SteeredInstance(backend)
        self._allowed = threading.Semaphore(0)
        self.error: Exception | None = None
        self.open = True
        self.tries = 0

    def allow(self) -> None:
        self._allowed.release()

    def instantiate(self, placement: Placement) -> SteeredInstance:
        self.tries += 1
        if not self.open:
            assert self._allowed.acquire(timeout=10)
        if self.error is not None:
            raise self.error
        return self.make()


def gated(root: Path, config: str = "") -> tuple[Steered, Gate]:
    backend = Steered(execute=dies_of_666, instantiate=lambda placement: gate.instantiate(placement))
    gate = Gate(backend)
    write_model(root, "m", FLOATS + config)
    return backend, gate
