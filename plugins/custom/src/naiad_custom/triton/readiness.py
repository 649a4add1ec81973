"""Asking a model's `is_ready` without ever waiting for it: the event loop asks, a thread calls."""

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from time import monotonic
from typing import Any

LIMIT = 5.0
"""Seconds after which an `is_ready` that has not answered counts as not ready."""

_PATIENCE = 0.002
"""Seconds that a question waits for a fresh answer; most `is_ready` need 50 µs, and the event loop must go on."""


class ReadyCheck:
    """Calls `is_ready`, plain or `async def`, on a thread of its own, one call at a time.

    `reason()` is the newest answer there is: a slow `is_ready` is known by its last one until the next is there.
    """

    def __init__(self, is_ready: Callable[[], Any]) -> None:
        self._is_ready = is_ready
        self._executor = ThreadPoolExecutor(1, "naiad-is-ready")
        self._running: Future[str] | None = None
        self._since = 0.0
        self._last = ""

    def reason(self) -> str:
        """Why the model is not ready, "" when it is. Returns at once."""
        if self._running is None:
            self._since = monotonic()
            self._running = self._executor.submit(self._ask)
        try:
            self._last = self._running.result(_PATIENCE)
            self._running = None
        except NotYet:
            if monotonic() - self._since > LIMIT:
                return f"is_ready() has not answered for {LIMIT:g} seconds"
        return self._last

    def close(self) -> None:
        """Ask no more; a call under way is left to itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _ask(self) -> str:
        try:
            answer = self._is_ready()
            if inspect.isawaitable(answer):
                answer = asyncio.run(_awaited(answer))
        except Exception as error:  # noqa: BLE001 - the model's own code; whatever it raises is the reason
            return f"is_ready() raised {type(error).__name__}: {error}"
        if not isinstance(answer, bool):
            return f"is_ready() answered with {type(answer).__name__}; it must answer True or False"
        return "" if answer else "is_ready() answered False"


async def _awaited(answer: Any) -> Any:
    return await answer
