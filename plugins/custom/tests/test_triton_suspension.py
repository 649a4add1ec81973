"""Plain code of a task waits; the event loop goes on with the other tasks."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar

import pytest

from naiad_custom.loops import LoopThread, soon
from naiad_custom.triton.suspension import may_suspend, suspendable_task, wait_for


@pytest.fixture
def thread():
    thread = LoopThread("naiad-test-suspension")
    thread.loop.set_task_factory(suspendable_task)
    yield thread
    thread.end()


def test_a_task_waits_in_plain_code(thread):
    steps, room = [], Future()

    async def sending():
        steps.extend(map(wait_for, [room]))
        await asyncio.sleep(0)
        return asyncio.current_task() is not None

    async def other():
        for _ in range(5):
            await asyncio.sleep(0)
        steps.append("another task")

    running = thread.start(sending())
    thread.start(other()).result(10)
    room.set_result("went on")

    assert running.result(10)
    assert steps == ["another task", "went on"]


def test_what_is_no_coroutine_makes_no_task(thread):
    async def begin():
        await asyncio.create_task(asyncio.get_running_loop().create_future())

    with pytest.raises(TypeError, match="a coroutine was expected, got <Future pending>"):
        thread.start(begin()).result(10)


def test_other_code_blocks():
    done = Future()
    threading.Timer(0.01, done.set_result, ["there"]).start()

    assert (may_suspend(), wait_for(done)) == (False, "there")


def test_an_error_that_is_waited_for_is_raised_in_plain_code(thread):
    broken = Future()

    async def waiting():
        soon(thread.loop, lambda: broken.set_exception(ValueError("no")))
        with pytest.raises(ValueError, match="no"):
            wait_for(broken)
        return may_suspend()

    assert thread.start(waiting()).result(10)


def test_a_task_keeps_its_context_variables(thread):
    variable, room = ContextVar("variable", default=0), Future()

    async def setting(number):
        variable.set(number)
        wait_for(room)
        await asyncio.sleep(0)
        return variable.get(), await asyncio.create_task(getting())

    async def getting():
        return variable.get()

    running = [thread.start(setting(number)) for number in (1, 2)]
    room.set_result(None)

    assert [each.result(10) for each in running] == [(1, 1), (2, 2)]


def test_a_task_that_was_made_by_a_task_waits_alone(thread):
    steps, room = [], Future()

    async def child():
        wait_for(room)
        await asyncio.sleep(0)
        steps.append("child")

    async def parent():
        created = asyncio.create_task(child())
        for _ in range(5):
            await asyncio.sleep(0)
        steps.append("parent")
        room.set_result(None)
        await created

    thread.start(parent()).result(10)

    assert steps == ["parent", "child"]


def test_what_is_awaited_gives_its_result_or_raises(thread):
    async def one():
        return 1

    async def broken():
        await asyncio.sleep(0)
        raise ValueError("no")

    async def awaiting():
        with pytest.raises(ValueError, match="no"):
            await broken()
        async with asyncio.timeout(10):
            return await asyncio.gather(one(), one())

    assert thread.start(awaiting()).result(10) == [1, 1]


def test_a_task_that_waits_in_plain_code_can_be_cancelled(thread):
    steps, waiting = [], threading.Event()

    async def sending():
        waiting.set()
        try:
            wait_for(Future())
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise

    running = thread.start(sending())
    assert waiting.wait(10)
    thread.cancel_all()

    assert steps == ["cancelled"]
    assert running.cancelled()


def test_a_task_that_has_ended_keeps_nothing_alive(thread):
    class Payload:
        pass

    kept = []

    async def raising(payload):
        kept.append(weakref.ref(payload))
        wait_for(soon_done(thread))
        await asyncio.sleep(0)
        raise ValueError("no")

    gc.disable()
    try:
        thread.start(outcome_of(raising(Payload()))).result(10)
        thread.wait_for(lambda: None)
        assert [each() for each in kept] == [None]
    finally:
        gc.enable()


async def outcome_of(coroutine):
    with suppress(ValueError):
        await coroutine


def soon_done(thread):
    future = Future()
    soon(thread.loop, lambda: future.set_result(None))
    return future
