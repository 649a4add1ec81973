"""An event loop whose clock stands still until a test moves it on, so that nobody waits for a timer."""

import asyncio
from collections.abc import Callable


class JumpingLoop(asyncio.SelectorEventLoop):
    """Other threads wake it up as usual; its timers fire when a test jumps ahead."""

    def __init__(self) -> None:
        super().__init__()
        self._now = super().time()

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


async def jump(seconds: float) -> None:
    """Let that much time pass on the running loop's clock, and what is due by then happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    await turns()
    loop.jump(seconds)
    await turns()


async def turns(count: int = 30) -> None:
    """Let what is ready on the running loop happen, and what becomes ready by that."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(done: Callable[[], object]) -> None:
    """Let the loop go on until it is so; the test's time limit ends what never becomes so."""
    while not done():  # noqa: ASYNC110 - what is awaited happens on other threads
        await asyncio.sleep(0)
