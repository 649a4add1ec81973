"""Readiness poll: reports changes of the server's readiness to all watchers; it runs while there is a watcher."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable


class ReadinessPoll:
    """Checks the readiness after each `pause`, once for all watchers, until the frontend is `stopping`.

    `pause` returns at once when the frontend is `stopping`.
    """

    def __init__(
        self, is_ready: Callable[[], bool], stopping: asyncio.Event, pause: Callable[[], Awaitable[object]]
    ) -> None:
        self._is_ready = is_ready
        self._stopping = stopping
        self._pause = pause
        self._last = False
        self._changed = asyncio.Event()
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None

    async def watch(self) -> AsyncGenerator[bool, None]:
        """Yields whether the server is ready: now, at each change, and finally False when the frontend stops.

        Raises what the check of the readiness raises.
        """
        self._check()
        task = self._join()
        sent: bool | None = None
        try:
            while True:
                changed = self._changed  # before the comparison: no change is missed while the client reads
                if self._last != sent:
                    sent = self._last
                    yield sent
                elif task.done():
                    task.result()
                    return
                else:
                    await changed.wait()
        finally:
            self._leave()

    def _join(self) -> asyncio.Task[None]:
        self._watchers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="poll readiness for Health/Watch")
            self._task.add_done_callback(lambda _: self._publish())
        return self._task

    def _leave(self) -> None:
        self._watchers -= 1
        if not self._watchers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self._pause()
            self._check()

    def _check(self) -> None:
        before, self._last = self._last, not self._stopping.is_set() and self._is_ready()
        if self._last != before:
            self._publish()

    def _publish(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
