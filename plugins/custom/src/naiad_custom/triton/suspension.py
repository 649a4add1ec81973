"""Waiting in the code of a model: in an `async def execute` it suspends one task, and other tasks run on.

That takes the package greenlet, which this distribution brings. An isolated model in an environment of its own may lack
it, for numpy is all that it must have: there a wait in an `async def execute` holds up its other tasks too.
"""

import asyncio
from concurrent.futures import Future
from typing import Any, TypeVar

try:
    from naiad_custom.triton.greenlets import may_suspend, suspendable_task, wait_for
except ModuleNotFoundError:
    _T = TypeVar("_T")

    def suspendable_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
        """A task as asyncio makes it."""
        return asyncio.Task(coroutine, loop=loop, **options)

    def may_suspend() -> bool:
        """Whether the running code belongs to a task that can be suspended: no."""
        return False

    def wait_for(future: "Future[_T]") -> _T:
        """The result of a future of another thread."""
        return future.result()


__all__ = ["may_suspend", "suspendable_task", "wait_for"]
