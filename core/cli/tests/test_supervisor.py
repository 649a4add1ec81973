"""When a server that ended is started again."""

import signal
from errno import ENOMEM

import pytest

from naiad_cli.stop_signals import stop_signals
from naiad_cli.supervisor import RestartPolicy, Supervisor


@pytest.mark.parametrize("served", [True, False])
def test_a_server_that_stopped_in_order_is_not_started_again(served: bool) -> None:
    assert RestartPolicy().next_delay(0, served, 100.0) is None


def test_a_server_that_could_not_start_is_not_started_again() -> None:
    assert RestartPolicy().next_delay(1, served=False, lifetime=0.5) is None


def test_a_restart_that_failed_is_tried_again_once_a_server_has_served() -> None:
    policy = RestartPolicy()

    assert [policy.next_delay(status, served, 0.5) for status, served in ((-9, True), (1, False))] == [1.0, 2.0]


def test_a_process_that_cannot_be_started_is_reported_and_counts_as_a_failed_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise OSError(ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("subprocess.Popen", no_memory)
    handlers = {number: signal.getsignal(number) for number in stop_signals()}
    try:
        status = Supervisor(["serve"]).run()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    assert status == 1
    assert "the server's process cannot be started: OSError: [Errno 12] Cannot allocate memory" in caplog.text


@pytest.mark.parametrize(("status", "served"), [(-11, True), (-11, False), (1, True), (70, True)])
def test_a_server_that_crashed_is_started_again_after_a_second(status: int, served: bool) -> None:
    assert RestartPolicy().next_delay(status, served, lifetime=5.0) == 1.0


def test_the_delay_doubles_up_to_half_a_minute_and_starts_anew_after_a_minute_of_life() -> None:
    policy = RestartPolicy()

    delays = [policy.next_delay(-11, True, lifetime=5.0) for _ in range(7)]

    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert [policy.next_delay(-11, True, lifetime) for lifetime in (61.0, 5.0)] == [1.0, 2.0]
