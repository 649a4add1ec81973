import asyncio
import gc
import threading
import weakref
from contextlib import suppress
from functools import partial, wraps

import pytest

from naiad.errors import InternalError, InvalidArgumentError, RequestCancelledError
from naiad_kit.frontends.codec_threads import CodecThreads


def _on_a_loop(test):
    @wraps(test)
    def run(**fixtures):
        asyncio.run(test(**fixtures))

    return run


class _Payload:
    """Something that a weak reference can watch."""


@pytest.fixture
def threads():
    threads = CodecThreads(threads=1)
    yield threads
    threads.close()


async def _blocked(threads):
    """An event that the one thread waits for, once it does."""
    running, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block():
        loop.call_soon_threadsafe(running.set)
        go_on.wait(10)

    threads.submit(block, lambda _: None)
    await running.wait()
    return go_on


@_on_a_loop
async def test_work_runs_on_a_daemon_thread_of_that_name(threads):
    thread = await threads.run(threading.current_thread)

    assert (thread.name, thread.daemon) == ("naiad-codec", True)


@_on_a_loop
async def test_without_a_thread_the_work_fails_and_with_one_it_waits_for_that(monkeypatch):
    pool = CodecThreads(threads=2)

    def refuse(_thread):
        raise RuntimeError("no new thread")

    with monkeypatch.context() as shortage:
        shortage.setattr(threading.Thread, "start", refuse)
        with pytest.raises(InternalError, match="ulimit -u"):
            await pool.run(int)
    assert await pool.run(int) == 0
    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert await pool.run(int) == 0
    pool.close()


@_on_a_loop
async def test_what_the_work_raises_is_raised_here(threads):
    def refuse():
        raise InvalidArgumentError("no")

    with pytest.raises(InvalidArgumentError, match="no"):
        await threads.run(refuse)


@_on_a_loop
async def test_what_would_end_a_thread_does_not_end_this_one(threads):
    def leave():
        raise SystemExit

    with pytest.raises(RuntimeError, match="SystemExit"):
        await threads.run(leave)

    assert await threads.run(lambda: 7) == 7


@_on_a_loop
async def test_queued_work_whose_task_is_cancelled_never_runs(threads):
    go_on = await _blocked(threads)
    ran = []
    task = asyncio.create_task(threads.run(partial(ran.append, "cancelled")))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.wait([task])
    go_on.set()
    await threads.run(partial(ran.append, "later"))

    assert ran == ["later"]


@_on_a_loop
async def test_cancelled_work_drops_its_payload_at_once(threads):
    go_on = await _blocked(threads)
    payload = _Payload()
    watched = weakref.ref(payload)
    job = threads.submit(partial(id, payload), lambda _: None)
    del payload

    job.cancel()

    assert watched() is None
    go_on.set()


@_on_a_loop
async def test_the_result_of_running_work_is_dropped_when_it_is_cancelled(threads):
    results = []
    job = threads.submit(lambda: "late", results.append)

    job.cancel()
    await threads.run(lambda: None)

    assert results == []


@pytest.mark.parametrize("fails", [False, True])
@_on_a_loop
async def test_finished_work_leaves_nothing_behind_without_a_collection(threads, fails):
    async def work(payload):
        with suppress(InvalidArgumentError):
            await threads.run(partial(_use, payload, fails))

    gc.disable()
    try:
        payload = _Payload()
        watched = weakref.ref(payload)
        await work(payload)
        del payload
        await threads.run(lambda: None)

        assert watched() is None
    finally:
        gc.enable()


def _use(payload, fails):
    if fails:
        raise InvalidArgumentError(f"{payload} is refused")


@_on_a_loop
async def test_closed_threads_take_no_work_and_end_after_what_they_have():
    threads = CodecThreads(threads=1)
    thread = await threads.run(threading.current_thread)

    threads.close()

    with pytest.raises(RequestCancelledError):
        await threads.run(lambda: None)
    thread.join(10)
    assert not thread.is_alive()


@_on_a_loop
async def test_closing_waits_for_nothing():
    threads = CodecThreads(threads=1)
    go_on = await _blocked(threads)

    threads.close()

    assert not go_on.is_set()
    go_on.set()


@_on_a_loop
async def test_threads_that_nothing_refers_to_end():
    threads = CodecThreads(threads=1)
    thread = await threads.run(threading.current_thread)

    del threads

    thread.join(10)
    assert not thread.is_alive()
