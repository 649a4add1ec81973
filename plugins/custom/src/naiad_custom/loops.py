"""An event loop on its own thread, and how other threads submit coroutines to it."""

import asyncio
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakSet

from naiad.types import Request

_T = TypeVar("_T")

_cleaning_up: "WeakSet[asyncio.Task[Any]]" = WeakSet()
"""Tasks whose callers have left: a second cancellation would end what functions await in their `finally`."""


class LoopThread:
    """An event loop that runs on its own thread until `end`, whatever its tasks raise."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, coroutine: Coroutine[Any, Any, _T]) -> "Future[_T]":
        """Start a task for the coroutine; the future has its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def wait_for(self, action: Callable[[], Any]) -> None:
        """Run something of the user's, plain or `async def`, on the event loop and wait until it is done."""
        self.start(_done(action)).result()

    def cancel_all(self) -> None:
        """Cancel every task and asynchronous generator, but not those that clean up, and wait until all have ended."""
        self.start(_cancel_all()).result()

    def end(self) -> None:
        """Stop the loop and its thread."""
        self._ended = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _run(self) -> None:
        while not self._ended:
            with suppress(SystemExit, KeyboardInterrupt):  # the task's own future has the error; the others go on
                self.loop.run_forever()


def loop_of_thread() -> asyncio.AbstractEventLoop | None:
    """Make an event loop for the running thread, where `asyncio.get_event_loop` returns it; the caller closes it.

    None where the thread has a loop already, as the main thread of a process has before Python 3.14.
    """
    if sys.version_info < (3, 14) and threading.current_thread() is threading.main_thread():
        return None
    try:
        if not asyncio.get_event_loop().is_closed():
            return None
    except RuntimeError:  # it has none
        pass
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


def soon(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Have the loop call something, from any thread; a loop that has ended calls nothing any more."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act)


async def room_in(room: "Future[None]") -> None:
    """Wait for a future of another thread, and leave it alone when the wait is cancelled."""
    there = asyncio.Event()
    loop = asyncio.get_running_loop()
    room.add_done_callback(lambda _: soon(loop, there.set))
    await there.wait()


@contextmanager
def cancelled_with(requests: Sequence[Request]) -> Iterator[None]:
    """Cancel the running task once, inside the block, when the callers of all these requests have left."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    over = False

    def cancel() -> None:
        nonlocal over
        if not over and task is not None:
            over = True
            _cleaning_up.add(task)
            task.cancel()

    def note_cancelled() -> None:
        if have_left(requests):
            soon(loop, cancel)

    for request in requests:
        request.on_cancelled = note_cancelled
    note_cancelled()  # those that left before they could be listened to
    try:
        yield
    finally:
        over = True
        for request in requests:
            request.on_cancelled = None


def begin_clean_up() -> None:
    """The caller of the running task has left: from here on `cancel_all` waits for the task and does not cancel it."""
    task = asyncio.current_task()
    if task is not None:
        _cleaning_up.add(task)


def have_left(requests: Sequence[Request]) -> bool:
    """Whether the callers of all these requests have left."""
    return all(request.cancelled for request in requests)


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        if task not in _cleaning_up:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


async def _done(action: Callable[[], Any]) -> None:
    outcome = action()
    if inspect.isawaitable(outcome):
        await outcome
