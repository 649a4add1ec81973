"""The watchdog of the event loop, without a thread and a clock: beats that arrive, and beats that do not."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from naiad_cli import watchdog
from naiad_cli.watchdog import CHECKS, Watchdog, watching


class Loop:
    """An event loop that runs what was posted when the test says so."""

    def __init__(self) -> None:
        self.posted: list[Callable[[], None]] = []
        self.stalls: list[int] = []
        self.closed = False
        self.watchdog = Watchdog(self.post, self.stalls.append)

    def post(self, beat: Callable[[], None]) -> None:
        if self.closed:
            raise RuntimeError("Event loop is closed")
        self.posted.append(beat)

    def turn(self) -> None:
        for beat in self.posted:
            beat()
        self.posted.clear()

    def check(self, times: int) -> None:
        for _ in range(times):
            assert self.watchdog.check()


def test_a_loop_that_runs_is_left_alone() -> None:
    loop = Loop()

    for _ in range(10 * CHECKS):
        loop.check(1)
        loop.turn()

    assert loop.stalls == []


def test_a_loop_that_stands_still_is_reported_once_with_its_thread() -> None:
    loop = Loop()
    loop.check(1)
    loop.turn()
    loop.check(1)

    loop.check(CHECKS - 1)
    before = list(loop.stalls)
    loop.check(CHECKS)

    assert before == []
    assert loop.stalls == [threading.get_ident()]


def test_only_checks_in_a_row_count() -> None:
    loop = Loop()

    for _ in range(5):
        loop.check(CHECKS)
        loop.turn()

    assert loop.stalls == []


def test_no_more_than_one_beat_waits_in_a_loop_that_stands_still() -> None:
    loop = Loop()

    loop.check(CHECKS)

    assert len(loop.posted) == 1


def test_a_closed_loop_is_not_watched_any_more() -> None:
    loop = Loop()
    loop.closed = True

    assert not loop.watchdog.check()


def test_a_real_loop_that_stands_still_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(watchdog, "end_stalled_process", lambda seconds, thread: ended.set())

    async def stand_still() -> None:
        with watching(asyncio.get_running_loop(), 0.05):
            assert ended.wait(30)

    asyncio.run(stand_still())


def test_without_a_limit_there_is_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object, **__: object) -> None:
        raise AssertionError("a thread was started")

    async def run() -> None:
        monkeypatch.setattr(threading, "Thread", no_thread)
        with watching(asyncio.get_running_loop(), 0.0):
            pass

    asyncio.run(run())
