"""Containment of plugin code on the event loop: what it raises is logged, and ends neither the loop nor the server."""

import asyncio
import logging
from collections.abc import Callable

from naiad.errors import InternalError, NaiadError
from naiad.foreign_errors import describe_error, raise_interrupt


class contained:  # noqa: N801 - it reads as a statement: `with contained(...)`
    """A block of plugin code that raises NaiadError only: another error is logged, and raised as one by `failure`.

    `step` says what the block does (`draining model 'm'`). A cancellation and the user's Ctrl-C are passed on.
    """

    def __init__(self, step: str, failure: Callable[[str], NaiadError] | None = None, model: str = "") -> None:
        self._step, self._failure, self._model = step, failure, model

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool | None:
        if error is None or isinstance(error, NaiadError) or _is_cancellation(error):
            return None
        self._log(error)
        reason = describe_error(error)
        raise (self._failure(reason) if self._failure else InternalError(f"{self._step} failed: {reason}")) from error

    def _log(self, error: BaseException) -> None:
        raise_interrupt(error)
        logger = logging.getLogger("naiad.model" if self._model else "naiad")
        logger.error("%s failed", self._step, exc_info=error, extra={"model": self._model} if self._model else None)


class logged(contained):  # noqa: N801
    """As `contained`, but nothing is raised: execution goes on after the block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or _is_cancellation(error):
            return False
        self._log(error)
        return True


def _is_cancellation(error: BaseException) -> bool:
    """Whether the error cancels the task that runs now; plugin code may raise a CancelledError of its own."""
    if not isinstance(error, asyncio.CancelledError) or asyncio._get_running_loop() is None:
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
