"""Back-pressure for `async def execute`: a task that sends faster than its client reads pauses at its next await."""

import asyncio
import types
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from typing import Any

from naiad_custom.loops import room_in

_MOST = 64
"""So many responses may a task send without room before it has to hold its event loop up after all."""


class PacedTask(asyncio.Task[Any]):
    """A task that waits, whenever it goes on after an await, until there is room for what it has sent."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self.rooms: list[Future[None]] = []
        super().__init__(_driven(coroutine, self.rooms), **options)


def paced_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """A task factory for `loop.set_task_factory`."""
    return PacedTask(coroutine, loop=loop, **options)


def wait_for_room(room: "Future[None]") -> None:
    """Wait until the future is done; on an event loop with paced tasks, the running one waits at its next await."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs on this thread
        task = None
    if isinstance(task, PacedTask) and len(task.rooms) < _MOST:
        task.rooms.append(room)
    else:
        room.result()


async def _driven(coroutine: Coroutine[Any, Any, Any], rooms: "list[Future[None]]") -> Any:
    return await _steps(coroutine, rooms)


@types.coroutine
def _steps(coroutine: Coroutine[Any, Any, Any], rooms: "list[Future[None]]") -> Generator[Any, Any, Any]:
    """Run a coroutine step by step, as an await does, with a wait for room before each step but the first."""
    outcome: Any = None
    error: BaseException | None = None
    while True:
        try:
            awaited = coroutine.send(outcome) if error is None else coroutine.throw(error)
        except StopIteration as end:
            return end.value
        outcome = error = None
        try:
            outcome = yield awaited
            while rooms:
                yield from room_in(rooms.pop()).__await__()
        except BaseException as raised:  # noqa: BLE001 - it is the coroutine's to raise, a cancellation included
            error = raised
