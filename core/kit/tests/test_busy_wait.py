"""When waiting busily pays: where waits are short, and while it is not in vain."""

from collections.abc import Callable

import pytest

from naiad_kit.busy_wait import AwakeLoop, BusyWait


def after(*lengths: float) -> BusyWait:
    busy_wait = BusyWait(100e-6)
    for length in lengths:
        busy_wait.ended(length)
    return busy_wait


def test_waiting_busily_is_tried_at_first() -> None:
    assert BusyWait(100e-6).pays
    assert after(*[150e-6] * 5).pays


def test_waits_that_are_longer_with_sleep_are_tried_without_it_now_and_then() -> None:
    asleep = [500e-6] * 250
    assert not after(*asleep).pays
    assert after(*asleep, *[500e-6] * 6).pays
    assert after(*asleep, *[500e-6] * 6, *[50e-6] * 12).pays  # they were short without sleep, so it stays so


def test_waits_that_are_too_long_are_not_tried() -> None:
    assert not after(*[1e-3] * 256).pays


def test_short_waits_are_waited_busily() -> None:
    assert after(*[90e-6] * 20).pays


def test_long_waits_are_slept_through() -> None:
    assert not after(*[1e-3] * 20).pays


def test_one_long_wait_among_short_ones_changes_nothing() -> None:
    assert after(*[50e-6] * 20, 60.0).pays


def test_what_was_in_vain_eight_times_is_given_up_and_tried_again_later() -> None:
    assert not after(*[150e-6] * 30).pays
    assert after(*[150e-6] * 256).pays


class _Loop:
    """A loop whose rounds the test runs."""

    def __init__(self) -> None:
        self.ready: list[Callable[[], None]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.ready.append(call)

    def run_once(self) -> None:
        ready, self.ready = self.ready, []
        for call in ready:
            call()


@pytest.fixture
def loop() -> _Loop:
    return _Loop()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("naiad_kit.busy_wait.perf_counter", lambda: now[0])
    return now


@pytest.fixture
def awake(loop: _Loop, clock: list[float]) -> AwakeLoop:
    """A loop whose requests have come soon after the responses before them."""
    awake = AwakeLoop(loop, 100e-6)  # type: ignore[arg-type]
    for _ in range(20):
        awake.responded()
        clock[0] += 50e-6
        awake.arrived()
        loop.run_once()
    return awake


def test_a_loop_stays_awake_for_the_next_request_and_no_longer(
    awake: AwakeLoop, loop: _Loop, clock: list[float]
) -> None:
    awake.responded()
    loop.run_once()
    assert loop.ready

    clock[0] += 101e-6
    loop.run_once()

    assert not loop.ready


def test_a_loop_with_a_request_does_not_look_for_another(awake: AwakeLoop, loop: _Loop) -> None:
    awake.responded()
    awake.arrived()

    loop.run_once()

    assert not loop.ready


def test_two_responses_in_one_round_are_one_wait(awake: AwakeLoop, loop: _Loop) -> None:
    awake.responded()
    awake.arrived()
    awake.responded()

    assert len(loop.ready) == 1


def test_a_loop_sleeps_where_requests_come_late(awake: AwakeLoop, loop: _Loop, clock: list[float]) -> None:
    for _ in range(20):
        awake.responded()
        clock[0] += 1e-3
        awake.arrived()
        loop.run_once()

    awake.responded()

    assert not loop.ready
