"""The alarm for delays that the event loop cannot keep."""

import asyncio
import threading
from time import monotonic

import pytest

from naiad._engine.alarm import Alarm
from naiad_testing.loops import jump


async def test_an_alarm_rings_once_and_not_before_its_time() -> None:
    rung: asyncio.Queue[float] = asyncio.Queue()
    alarm = Alarm(asyncio.get_running_loop(), lambda: rung.put_nowait(monotonic()))
    at = monotonic() + 0.0003

    alarm.set(at)
    when = await rung.get()

    assert when >= at
    assert rung.empty()
    alarm.close()


async def test_an_earlier_time_takes_the_turn_of_a_later_one() -> None:
    rung = asyncio.Event()
    alarm = Alarm(asyncio.get_running_loop(), rung.set)
    alarm.set(monotonic() + 3600)

    alarm.set(monotonic() + 0.0001)

    await rung.wait()
    alarm.close()


async def test_an_alarm_whose_thread_could_not_start_rings_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rung = asyncio.Event()
    alarm = Alarm(asyncio.get_running_loop(), rung.set)
    with monkeypatch.context() as shortage:
        shortage.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            alarm.set(monotonic() + 0.0001)

    alarm.set(monotonic() + 0.0001)

    await rung.wait()
    alarm.close()


def refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("no new thread")


async def test_an_alarm_that_is_set_off_does_not_ring() -> None:
    rings: list[str] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    silenced = Alarm(loop, lambda: rings.append("silenced"))
    later = Alarm(loop, done.set)
    with silenced._changed:  # so that its thread cannot look in between, however late this one is
        silenced.set(monotonic() + 0.001)
        silenced.set(None)

    later.set(monotonic() + 0.003)

    await done.wait()
    assert rings == []
    silenced.close()
    later.close()


async def test_a_closed_alarm_ends_its_thread() -> None:
    alarm = Alarm(asyncio.get_running_loop(), lambda: None)
    alarm.set(monotonic() + 0.01)
    thread = alarm._thread
    assert thread is not None

    alarm.close()

    await asyncio.to_thread(thread.join, 10)
    assert not thread.is_alive()


async def test_a_time_that_the_loop_can_keep_takes_no_thread() -> None:
    rung = asyncio.Event()
    alarm = Alarm(asyncio.get_running_loop(), rung.set)
    alarm.set(monotonic() + 3600)

    await jump(3601)

    assert rung.is_set()
    assert alarm._thread is None
    alarm.close()
