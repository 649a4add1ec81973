"""An event loop whose clock tests move on by hand, so that nobody waits for a timer."""

import asyncio


class JumpingLoop(asyncio.SelectorEventLoop):
    """Runs at the pace of the real clock, except where a test jumps ahead."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def time(self) -> float:
        return super().time() + self._ahead

    def jump(self, seconds: float) -> None:
        self._ahead += seconds


async def jump(seconds: float) -> None:
    """Let that much time pass on the running loop's clock, and what is due by then happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    loop.jump(seconds)
    await turns()


async def turns(count: int = 5) -> None:
    """Let what is ready on the running loop happen, and what becomes ready by that."""
    for _ in range(count):
        await asyncio.sleep(0)
