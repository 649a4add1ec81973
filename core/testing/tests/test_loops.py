"""Coroutines as tests: what their fixtures enter ends with the test, on the loop of the test."""

import asyncio
from contextlib import AsyncExitStack, nullcontext
from types import SimpleNamespace

import pytest

from naiad_testing.loops import JumpingLoop, coroutine_tests, passing_time, until


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_test_enters_is_left_on_its_loop_however_the_test_ends(fails: bool) -> None:
    stack = AsyncExitStack()
    loops: list[tuple[str, asyncio.AbstractEventLoop]] = []

    async def leave() -> None:
        loops.append(("left", asyncio.get_running_loop()))

    async def test(value: int) -> None:
        loops.append((f"test {value}", asyncio.get_running_loop()))
        stack.push_async_callback(leave)
        if fails:
            raise AssertionError("it fails")

    item = SimpleNamespace(
        obj=test, funcargs={"value": 3, "stack": stack}, _fixtureinfo=SimpleNamespace(argnames=("value",))
    )
    with pytest.raises(AssertionError, match="it fails") if fails else nullcontext():
        coroutine_tests()(item)  # type: ignore[arg-type]

    assert [name for name, _ in loops] == ["test 3", "left"]
    assert loops[0][1] is loops[1][1]


def test_a_wait_for_what_a_timer_does_ends_while_time_passes() -> None:
    done: list[bool] = []

    async def wait() -> None:
        asyncio.get_running_loop().call_later(10, done.append, True)
        with passing_time():
            await until(lambda: done)

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(asyncio.wait_for(wait(), 100))

    assert done == [True]
