"""The steps of a stop, one after the other: each is bounded in time, and an error in one skips no other."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

_T = TypeVar("_T")
_logger = logging.getLogger("naiad")


class StopSteps:
    """Runs the steps of one stop. `current` is the name of the step that runs, "" before the first."""

    def __init__(self) -> None:
        self.current = ""

    async def run(self, name: str, work: Awaitable[_T], seconds: float | None, fallback: _T) -> _T:
        """The result of `work`, or `fallback` when it raises or is not done within so many seconds of the loop.

        A late step is cancelled and not awaited any longer. None is for work that bounds itself.
        """
        self.current = name
        task = asyncio.ensure_future(_guarded(name, work, fallback))
        await asyncio.wait((task,), timeout=seconds)
        if seconds is not None and not task.done():
            task.cancel()
            _logger.error("stopping: %s did not end within %.3g s and is given up", name, seconds)
            return fallback
        return fallback if task.cancelled() else task.result()


async def _guarded(name: str, work: Awaitable[_T], fallback: _T) -> _T:
    """As `work`; a SystemExit in a task would end the event loop, so that nothing else would be stopped."""
    try:
        return await work
    except asyncio.CancelledError:
        raise
    except BaseException:
        _logger.exception("stopping: %s failed", name)
        return fallback
