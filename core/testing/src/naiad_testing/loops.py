"""Event loops for tests: coroutines as pytest tests, and a loop whose clock stands still until a test moves it."""

import asyncio
import inspect
import selectors
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest


def coroutine_tests(
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> Callable[[pytest.Function], bool | None]:
    """The hook `pytest_pyfunc_call` for a conftest.py: a test that is a coroutine runs on an event loop of its own.

    Fixtures that are an `AsyncExitStack` are closed on that loop after the test, with what others have entered there.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_call(pyfuncitem.obj, arguments, pyfuncitem.funcargs.values()))
        return True

    return pytest_pyfunc_call


async def _call(
    test: Callable[..., Coroutine[Any, Any, object]], arguments: Mapping[str, Any], fixtures: Iterable[object]
) -> None:
    async with AsyncExitStack() as stacks:
        for fixture in fixtures:
            if isinstance(fixture, AsyncExitStack):
                await stacks.enter_async_context(fixture)
        await test(**arguments)


class JumpingLoop(asyncio.SelectorEventLoop):
    """Other threads wake it up as usual; its timers fire when a test jumps ahead.

    While time `passes`, a loop that has only a timer to wait for jumps ahead to that timer.
    """

    def __init__(self) -> None:
        self.passes = False
        super().__init__(_IdleSelector(self))
        self._now = super().time()

    def time(self) -> float:
        """The time of the loop's own clock."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Move the clock."""
        self._now += seconds


class _IdleSelector(selectors.DefaultSelector):
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


def _running_loop() -> JumpingLoop:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, JumpingLoop):
        raise TypeError("the test runs on another loop; write pytest_pyfunc_call = coroutine_tests(JumpingLoop)")
    return loop


async def jump(seconds: float) -> None:
    """Let so much time pass on the running loop's clock, and what is due by then happen."""
    loop = _running_loop()
    await turns()
    loop.jump(seconds)
    await turns()


@contextmanager
def passing_time() -> Iterator[None]:
    """Let time pass during the block, so that no timer is waited for."""
    loop = _running_loop()
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
    """Let the loop run until `done()` holds; the test's time limit ends a wait for what never happens."""
    loop = asyncio.get_running_loop()
    while not done():  # noqa: ASYNC110 - what is awaited happens on other threads
        # a loop that always has something to run never jumps to a timer, which `done()` may need
        await asyncio.sleep(0.05 if isinstance(loop, JumpingLoop) and loop.passes else 0)
