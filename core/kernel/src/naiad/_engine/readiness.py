"""Readiness checks: calls `ready()` of instances on threads, so that none of them can block the event loop."""

import inspect
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic

from naiad.backend import Instance
from naiad_config.user_code import describe_failure

_logger = logging.getLogger("naiad.model")

PATIENCE = 0.02
"""Seconds that the event loop waits for answers, once for each model: a plain check takes some 0.1 ms with its thread.

One that has taken longer is not waited for until it was quick again.
"""

LIMIT = 5.0
"""Seconds after which a check that has not answered counts as not ready."""


class ReadyCheck:
    """Calls `ready()` of one instance on a thread, one call at a time. For the event loop's thread.

    `begin` starts a call. `reason` is its answer, or the previous one while a slow call runs: never older than the
    question before.
    """

    def __init__(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._running: Future[str] | None = None
        self._since = 0.0
        self._reason = "ready() has not answered yet"
        self._is_slow = False

    def begin(self) -> None:
        """Start a call, unless one runs."""
        self._take()
        if self._running is not None:
            return
        self._since = monotonic()
        running = self._running = Future[str]()
        try:
            threading.Thread(target=self._call, args=(running,), name="naiad-ready", daemon=True).start()
        except RuntimeError as error:  # the process has as many threads as it may have
            running.set_result(f"ready() could not be called: {describe_failure(error)}")

    def reason(self, until: float) -> str:
        """Why the instance is not ready, "" when it is. Waits until that time (`time.monotonic`) at most."""
        running = self._running
        if running is not None and not self._is_slow:
            try:
                running.result(max(0.0, until - monotonic()))
            except TimeoutError:
                self._is_slow = True
        self._take()
        if self._running is not None and monotonic() - self._since > LIMIT:
            return f"ready() has not answered for {LIMIT:g} seconds"
        return self._reason

    def _take(self) -> None:
        """Keep the answer of a call that has ended."""
        running = self._running
        if running is not None and running.done():
            self._running = None
            self._reason = running.result()

    def _call(self, running: "Future[str]") -> None:
        try:
            answer = self._ready()
            reason = str(answer) if answer else ""
            if inspect.iscoroutine(answer):
                answer.close()
                reason = ASYNC_READY
        except BaseException as error:  # noqa: BLE001 - the instance's own code; whatever it raises is the reason
            reason = describe_failure(error)
        self._is_slow = monotonic() - self._since > PATIENCE
        running.set_result(reason)


ASYNC_READY = "ready() is async def; write def ready(self), which is called on a thread and may block"


def ready_check_of(instance: Instance) -> ReadyCheck | None:
    """The check of that instance; None where it has no `ready`."""
    try:
        ready = getattr(instance, "ready", None)
    except BaseException as error:  # noqa: BLE001 - a property of a plugin may raise anything
        reason = f"its 'ready' cannot be read: {describe_failure(error)}"
        return ReadyCheck(lambda: reason)
    return None if ready is None else ReadyCheck(ready)
