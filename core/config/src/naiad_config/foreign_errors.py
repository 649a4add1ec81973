"""Errors of foreign code, such as plugins and models: contained where they would end an event loop, except Ctrl-C.

`naiad.foreign_errors` has them for plugins.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable

from naiad_config.errors import InternalError, NaiadError, describe_error
from naiad_config.user_code import from_user_code


def raise_interrupt(error: BaseException) -> None:
    """Raise a KeyboardInterrupt again if it is the user's Ctrl-C; return for anything else.

    Python raises it in whatever the main thread executes while its own handler of SIGINT is installed. `naiad serve`
    and `asyncio.run` install theirs, so with them a KeyboardInterrupt is what the plugin itself raised.
    """
    if (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        raise error


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
        raise self._failed(reason) from error  # no variable: with the frame of its traceback it would be a cycle

    def _failed(self, reason: str) -> NaiadError:
        failure = self._failure(reason) if self._failure else InternalError(f"{self._step} failed: {reason}")
        failure.logged = True
        return failure

    def _log(self, error: BaseException) -> None:
        raise_interrupt(error)
        logger = logging.getLogger("naiad.model" if self._model else "naiad")
        extra = {"model": self._model} if self._model else None
        logger.error("%s failed", self._step, exc_info=from_user_code(error), extra=extra)


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
