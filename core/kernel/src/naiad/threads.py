"""Threads beside an event loop: whether the calling one runs it, and new ones for blocking work that may hang."""

import asyncio
import functools
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

_T = TypeVar("_T")


def on_event_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the calling code runs on that loop, which must never wait for itself."""
    return asyncio._get_running_loop() is loop


async def on_own_thread(name: str, function: Callable[..., _T], *args: object) -> _T:
    """The result of a blocking function on a new daemon thread, for rare work that may hang.

    It waits for no pool, and no process waits for it; cancelling the caller abandons the thread. Raises what the
    function raises, a SystemExit or KeyboardInterrupt as RuntimeError: in a task, these would end the event loop.
    """
    return await _started(name, functools.partial(function, *args))  # no variable for the future, which holds the error


def _started(name: str, call: Callable[[], _T]) -> "asyncio.Future[_T]":
    """The future of a call on a new thread.

    The frames of an error's traceback lead back to the frame of the thread. No variable of that frame holds the error
    or the future: it would keep the arguments of the call until a garbage collection.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_T] = loop.create_future()
    pending = [result]
    outcomes: list[tuple[Any, Exception | None]] = []

    def settle() -> None:
        future, (value, error) = pending.pop(), outcomes.pop()
        if error is not None and not future.done():
            future.set_exception(error)
        elif not future.done():
            future.set_result(value)

    def run() -> None:
        try:
            outcomes.append((call(), None))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            outcomes.append((None, _to_raise(name, error)))
        with suppress(RuntimeError):  # the loop is closed: the caller has gone
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name=name, daemon=True).start()
    return result


def _to_raise(name: str, error: BaseException) -> Exception:
    """The error without the frame of the thread; what would end the event loop, or never reach it, as RuntimeError."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        trace = error.__traceback__
        return error.with_traceback(trace.tb_next if trace is not None else None)
    return RuntimeError(f"{name} raised {type(error).__name__}: {error}")
