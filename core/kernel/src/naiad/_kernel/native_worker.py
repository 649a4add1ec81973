"""A worker for models that compute outside of Python, which get the interpreter back soon after they have computed."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from naiad._kernel.worker import Work, Worker

EAGER = 0.0001
"""Seconds after which a thread that waits for the interpreter asks for it, while such a model executes.

CPython's own 5 ms are longer than many executions: an ONNX model of 4 ms for 32 requests waited for some 3 ms more
behind the event loop, for 1.5 with this, and answered 8 % more requests. Models in Python answered 10 % fewer with it,
for they are interrupted each time: so it is not the default of the process.
"""


class SwitchInterval:
    """The interpreter's switch interval: the eager one while anybody asks for it, if `allowed` at all."""

    def __init__(self) -> None:
        self.allowed = False
        self._asking = 0
        self._patient = 0.0
        self._lock = threading.Lock()

    def hasten(self) -> None:
        """Somebody computes outside of Python."""
        with self._lock:
            self._asking += 1
            if self._asking == 1 and self.allowed:
                self._patient = sys.getswitchinterval()
                sys.setswitchinterval(min(EAGER, self._patient))

    def relax(self) -> None:
        """Somebody does not any more."""
        with self._lock:
            self._asking -= 1
            if not self._asking and self._patient:
                sys.setswitchinterval(self._patient)
                self._patient = 0.0

    @contextmanager
    def hastened(self) -> Iterator[None]:
        """The eager interval during the block, if it is allowed."""
        self.hasten()
        try:
            yield
        finally:
            self.relax()


SWITCH_INTERVAL = SwitchInterval()
"""That of this process. The command line allows it; a program that embeds a server keeps its own."""


class NativeWorker(Worker):
    """Executes as any worker, and asks for short waits meanwhile."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._hastened: set[int] = set()

    def execute(self, work: Work) -> None:
        """As of any worker."""
        self._hastened.add(work.place)
        SWITCH_INTERVAL.hasten()
        super().execute(work)

    def _arrived(self, work: Work) -> None:
        if work.place in self._hastened and self._flying.get(work.place) is work:
            self._hastened.discard(work.place)
            SWITCH_INTERVAL.relax()
        super()._arrived(work)

    def _bury(self, reason: str) -> None:
        for _ in self._hastened:
            SWITCH_INTERVAL.relax()
        self._hastened.clear()
        super()._bury(reason)
