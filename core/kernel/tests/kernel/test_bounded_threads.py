"""Thread pools for blocking calls: the limit of threads, and the references that errors keep."""

import asyncio
import gc
import threading
import weakref

import pytest

from naiad._lifecycle.bounded_threads import BoundedThreads, lent
from naiad.threads import on_own_thread
from naiad_testing.in_loop import off_the_loop
from naiad_testing.loops import until


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
async def test_what_would_end_the_event_loop_comes_as_a_runtime_error(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await on_own_thread("naiad-test", fail)


async def test_an_error_keeps_no_argument_of_its_call_alive() -> None:
    class Payload:
        pass

    def fail(payload: Payload) -> None:
        raise ValueError("wrong")

    async def call() -> weakref.ref[Payload]:
        payload = Payload()
        try:
            await on_own_thread("naiad-test", fail, payload)
        except ValueError:
            return weakref.ref(payload)
        raise AssertionError

    gc.collect()
    gc.disable()
    try:
        reference = await call()

        await until(lambda: reference() is None)
    finally:
        gc.enable()


async def test_no_more_calls_run_at_once_than_there_are_threads_but_for_those_that_are_lent() -> None:
    threads = BoundedThreads("naiad-test", 1)
    gate = threading.Event()
    begun = [threading.Event() for _ in range(2)]

    def wait(number: int) -> None:
        begun[number].set()
        assert gate.wait(10)

    first = asyncio.ensure_future(threads.run(wait, 0))
    await off_the_loop(lambda: begun[0].wait(10))
    second = asyncio.ensure_future(threads.run(wait, 1))
    await asyncio.sleep(0)
    assert not begun[1].is_set()
    block = lent(threads.slots)
    await block.__aenter__()
    await off_the_loop(lambda: begun[1].wait(10))
    gate.set()
    await asyncio.gather(first, second)
    await asyncio.wait_for(block.__aexit__(None, None, None), 10)
