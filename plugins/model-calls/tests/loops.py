"""An event loop whose clock stands still until a test moves it on, so that no test waits for a timer."""

import asyncio
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class JumpingLoop(asyncio.SelectorEventLoop):
    """Other threads wake it up as usual; its timers fire when a test jumps ahead.

    While time `passes`, a loop with nothing to do but wait for a timer jumps ahead to that timer.
    """

    def __init__(self) -> None:
        self.passes = False
        self._now = 0.0
        super().__init__(_Idling(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _Idling(selectors.DefaultSelector):
    """Lets the other threads run for a moment before the loop jumps."""

    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._loop.passes or not timeout:
            return super().select(timeout)
        ready = super().select(0.001)
        if not ready:
            self._loop.jump(timeout)
        return ready


async def jump(seconds: float) -> None:
    """Let that much time pass on the running loop's clock, and what is due by then happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    await turns()
    loop.jump(seconds)
    await turns()


@contextmanager
def passing_time() -> Iterator[None]:
    """Let time pass during the block, so that no timer is waited for."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    loop.passes = True
    try:
        yield
    finally:
        loop.passes = False


async def turns(count: int = 30) -> None:
    """Let what is ready on the running loop happen, and what becomes ready by that."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(done: Callable[[], object]) -> None:
    """Let the loop go on until it is so; the test's time limit ends what never becomes so."""
    while not done():  # noqa: ASYNC110 - what is awaited happens on other threads
        await asyncio.sleep(0)
