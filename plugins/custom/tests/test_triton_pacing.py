"""Tasks that send too fast wait at their next await; the event loop goes on."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from naiad_custom.loops import LoopThread, soon
from naiad_custom.triton.pacing import paced_task, wait_for_room


@pytest.fixture
def thread():
    thread = LoopThread("naiad-test-pacing")
    thread.loop.set_task_factory(paced_task)
    yield thread
    thread.end()


def test_a_task_waits_at_its_next_await(thread):
    steps, room = [], Future()

    async def sending():
        wait_for_room(room)
        steps.append("sent")
        await asyncio.sleep(0)
        steps.append("went on")
        return "done"

    async def other():
        for _ in range(5):
            await asyncio.sleep(0)
        steps.append("another task")

    running = thread.start(sending())
    thread.start(other()).result(10)
    room.set_result(None)

    assert running.result(10) == "done"
    assert steps == ["sent", "another task", "went on"]


def test_a_task_that_was_made_by_a_task_waits_alone(thread):
    steps, room = [], Future()

    async def child():
        wait_for_room(room)
        await asyncio.sleep(0)
        steps.append("child")

    async def parent():
        made = asyncio.create_task(child())
        for _ in range(5):
            await asyncio.sleep(0)
        steps.append("parent")
        room.set_result(None)
        await made

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


def test_a_task_that_waits_for_room_can_be_cancelled(thread):
    steps, waiting = [], threading.Event()

    async def sending():
        wait_for_room(Future())
        waiting.set()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise

    running = thread.start(sending())
    assert waiting.wait(10)
    thread.cancel_all()

    assert steps == ["cancelled"]
    assert running.cancelled()


def test_a_task_that_never_awaits_holds_its_loop_up_in_the_end(thread):
    steps, full, last = [], threading.Event(), Future()

    async def flooding():
        for _ in range(64):
            wait_for_room(Future())
        full.set()
        wait_for_room(last)
        steps.append("sent")

    running = thread.start(flooding())
    assert full.wait(10)
    soon(thread.loop, lambda: steps.append("the loop goes on"))
    last.set_result(None)
    running.result(10)
    thread.wait_for(lambda: None)

    assert steps == ["sent", "the loop goes on"]
