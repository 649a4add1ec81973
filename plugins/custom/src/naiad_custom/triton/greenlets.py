"""Suspension of tasks in plain code: an `async def execute` that waits in `next(responses)` or `send` blocks no other.

The steps of a task run in a greenlet. Code in it switches back to the task with a future to wait for, wherever it is,
and the event loop goes on with the other tasks.
"""

import asyncio
import types
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from naiad_custom.loops import room_in

_T = TypeVar("_T")


def suspendable_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """A task factory for `loop.set_task_factory`. Raises TypeError as asyncio does for what is no coroutine."""
    if not asyncio.iscoroutine(coroutine):
        raise TypeError(f"a coroutine was expected, got {coroutine!r}")
    task = asyncio.Task(_driven(coroutine), loop=loop, **options)
    task.add_done_callback(lambda _: coroutine.close())  # it has not begun where the task was cancelled at once
    return task


def may_suspend() -> bool:
    """Whether the running code belongs to a suspendable task."""
    return isinstance(getcurrent(), _Steps)


def wait_for(future: "Future[_T]") -> _T:
    """The result of a future of another thread. Suspends a suspendable task until it is there; others block."""
    steps = getcurrent()
    if isinstance(steps, _Steps) and steps.parent is not None and not future.done():
        steps.parent.switch(future)
    return future.result()


class _Steps(greenlet):  # type: ignore[misc]
    """Runs a coroutine step by step; gives its parent what is awaited, and in the end what the coroutine returns."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        super().__init__()
        self._coroutine = coroutine
        self.gr_context = getcurrent().gr_context

    def run(self, outcome: Any) -> Any:
        error: BaseException | None = None
        while True:
            try:
                awaited = self._coroutine.send(outcome) if error is None else self._coroutine.throw(error)
            except StopIteration as end:
                return end.value
            finally:
                outcome = error = None  # an error refers to this frame
            try:
                outcome = self.parent.switch(awaited)
            except BaseException as raised:  # noqa: BLE001 - it is the coroutine's to raise, a cancellation included
                error = raised


async def _driven(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return await _steps(coroutine)


@types.coroutine
def _steps(coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Await what the coroutine awaits, and what its plain code waits for."""
    steps = _Steps(coroutine)
    outcome: Any = None
    error: BaseException | None = None
    while True:
        try:
            awaited = steps.switch(outcome) if error is None else steps.throw(type(error), error, error.__traceback__)
        finally:
            outcome = error = None
        if steps.dead:
            return awaited
        try:
            if isinstance(awaited, Future):
                yield from room_in(awaited).__await__()
            else:
                outcome = yield awaited
        except BaseException as raised:  # noqa: BLE001 - the same
            error = raised
