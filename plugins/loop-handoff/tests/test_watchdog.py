"""The watchdog over the thread that runs the event loop: a long execution is noticed, and nothing else."""

import queue
import sys
import threading
from time import monotonic

import pytest

from naiad_loop_handoff import watchdog as module
from naiad_loop_handoff.watchdog import LONG, KernelTimer, PlainTimer, Watchdog, timer

TIMERS = [PlainTimer, pytest.param(KernelTimer, marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux"))]


@pytest.mark.parametrize("make", TIMERS)
def test_a_timer_ends_a_wait_when_it_is_time_and_not_before(make):
    clock = make()
    began = monotonic()

    clock.set(0.03)
    clock.wait()

    assert monotonic() - began >= 0.03


@pytest.mark.parametrize("make", TIMERS)
def test_a_timer_that_is_put_off_ends_a_wait_later(make):
    clock = make()
    began = monotonic()

    clock.set(0.01)
    clock.set(0.05)
    clock.wait()

    assert monotonic() - began >= 0.05


@pytest.mark.parametrize("make", TIMERS)
def test_a_timer_is_set_while_a_thread_waits(make):
    clock, done = make(), threading.Event()

    def wait():
        clock.wait()
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    clock.set(0)

    assert done.wait(10)


@pytest.mark.parametrize("make", TIMERS)
def test_a_timer_that_was_not_set_again_ends_no_second_wait(make):
    clock, ended = make(), queue.SimpleQueue()

    def wait():
        for _ in range(2):
            clock.wait()
            ended.put(monotonic())

    threading.Thread(target=wait, daemon=True).start()
    clock.set(0)
    ended.get(timeout=10)
    with pytest.raises(queue.Empty):
        ended.get(timeout=0.05)
    clock.set(0)
    ended.get(timeout=10)


def test_where_there_is_no_such_timer_the_plain_one_is_taken(monkeypatch):
    def none():
        raise OSError

    monkeypatch.setattr(module, "KernelTimer", none)

    assert isinstance(timer(), PlainTimer)


class Clock:
    """A timer whose waits a test ends, and what it was set to."""

    def __init__(self) -> None:
        self.times: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._ends: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self, seconds: float) -> None:
        self.times.put(seconds)

    def wait(self) -> None:
        self._ends.get()

    def fire(self) -> None:
        self._ends.put(None)


@pytest.fixture
def now(monkeypatch):
    """The time, which a test changes."""
    time = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: time[0])
    return time


@pytest.fixture
def watched(now):
    """A watchdog that has started, its clock and what it noticed."""
    clock, noticed = Clock(), queue.SimpleQueue()
    watchdog = Watchdog(lambda: noticed.put(now[0]), clock)
    watchdog.start()
    yield watchdog, clock, noticed
    watchdog.end()
    clock.fire()


def test_what_has_begun_and_goes_on_is_noticed(watched, now):
    watchdog, clock, noticed = watched
    watchdog.begin()

    now[0] += clock.times.get(timeout=10)
    clock.fire()

    assert noticed.get(timeout=10) == now[0]


def test_what_begins_while_the_timer_runs_is_given_its_time(watched, now):
    watchdog, clock, noticed = watched
    watchdog.begin()
    first = clock.times.get(timeout=10)
    now[0] += LONG / 4
    watchdog.begin()
    now[0] += first - LONG / 4

    now[0] -= LONG / 2  # the timer is early, as far as the second is concerned
    clock.fire()
    seconds = clock.times.get(timeout=10)
    now[0] += seconds
    clock.fire()

    assert 0 < seconds < LONG
    assert noticed.get(timeout=10) == now[0]
    assert noticed.empty()


def test_the_timer_is_put_off_now_and_then_and_not_each_time(watched, now):
    watchdog, clock, _ = watched

    for _ in range(1000):
        watchdog.begin()
        now[0] += LONG / 100

    assert 10 <= clock.times.qsize() <= 25


def test_the_thread_ends_with_the_watchdog(now):
    clock = Clock()
    before = set(threading.enumerate())
    watchdog = Watchdog(lambda: None, clock)
    watchdog.start()
    (thread,) = set(threading.enumerate()) - before

    watchdog.end()
    clock.fire()
    thread.join(10)

    assert not thread.is_alive()
