"""SIGINT, SIGTERM and SIGHUP stop the server; a stop that hangs ends the process."""

import queue
import signal
from collections.abc import Iterator

import pytest

from naiad_cli.stop_signals import Action, StopPolicy, StopSignals
from naiad_cli.supervisor import Supervisor

TERM, INT, HUP = signal.SIGTERM, signal.SIGINT, signal.SIGHUP


class Recorder:
    """What the signals called: "stop", "end STATUS" and "end in SECONDS"; `error` is what the stop raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.events: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._error = error

    def stop(self) -> None:
        self.events.put("stop")
        if self._error is not None:
            raise self._error

    def end(self, status: int) -> None:
        self.events.put(f"end {status}")

    def end_in(self, seconds: float) -> None:
        self.events.put(f"end in {seconds:g}")

    def signals(self, grace: float = 30.0) -> StopSignals:
        return StopSignals(self.stop, lambda: "the models", grace, self.end, self.end_in)

    def next(self) -> str:
        return self.events.get(timeout=10)


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (INT, TERM, HUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [TERM, INT, HUP])
def test_the_first_signal_stops_the_server(number: int) -> None:
    assert StopPolicy().received(number, 100.0) is Action.STOP


@pytest.mark.parametrize(("first", "second"), [(TERM, TERM), (TERM, INT), (INT, TERM), (INT, HUP)])
def test_another_signal_changes_nothing(first: int, second: int) -> None:
    policy = StopPolicy()
    policy.received(first, 100.0)

    assert policy.received(second, 102.0) is Action.GO_ON


@pytest.mark.parametrize(("later", "action"), [(0.1, Action.GO_ON), (0.6, Action.END_NOW)])
def test_a_second_ctrl_c_ends_the_process_unless_it_is_the_same_key_passed_on_twice(
    later: float, action: Action
) -> None:
    policy = StopPolicy()
    policy.received(INT, 100.0)

    assert policy.received(INT, 100.0 + later) is action


@pytest.mark.parametrize(("number", "says_how"), [(INT, True), (TERM, False)])
def test_the_first_ctrl_c_says_how_to_end_the_process_at_once(
    caplog: pytest.LogCaptureFixture, number: int, says_how: bool
) -> None:
    caplog.set_level("INFO", "naiad")

    Recorder().signals().act(number, 1.0)

    assert ("Ctrl-C again ends the process at once" in caplog.text) is says_how


def test_the_server_stops_before_the_signal_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()

    def refuse(*_: object) -> None:
        raise ValueError("I/O operation on closed file")

    monkeypatch.setattr("naiad_cli.stop_signals._logger.info", refuse)
    with pytest.raises(ValueError, match="closed file"):
        recorder.signals().act(TERM, 1.0)

    assert recorder.next() == "stop"


def test_a_handled_signal_stops_the_server(handlers: None) -> None:
    recorder = Recorder()
    recorder.signals().install()

    signal.raise_signal(HUP)

    assert "stop" in [recorder.next(), recorder.next()]


def test_a_hangup_that_is_ignored_stays_ignored(handlers: None) -> None:
    signal.signal(HUP, signal.SIG_IGN)

    Recorder().signals().install()

    assert signal.getsignal(HUP) is signal.SIG_IGN


@pytest.mark.parametrize(("number", "is_forwarded"), [(INT, True), (HUP, False)])
def test_a_supervisor_takes_an_interrupt_that_its_shell_ignores(
    handlers: None, number: signal.Signals, is_forwarded: bool
) -> None:
    signal.signal(number, signal.SIG_IGN)

    assert Supervisor(["--version"]).run() == 0

    assert (signal.getsignal(number) is not signal.SIG_IGN) == is_forwarded


def test_a_signal_after_the_event_loop_has_ended_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(RuntimeError("Event loop is closed"))
    caplog.set_level("INFO")

    recorder.signals().act(TERM, 1.0)

    assert "Signal (15) received" in caplog.text


def test_a_second_ctrl_c_ends_with_status_1(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    signals = recorder.signals()

    signals.act(INT, 1.0)
    signals.act(INT, 3.0)

    assert [recorder.next(), recorder.next()] == ["stop", "end 1"]
    assert "received again; the process ends at once" in caplog.text
    assert caplog.records[-1].filename == "stop_signals.py"


def test_a_stop_that_stands_still_ends_the_process_and_names_the_step(
    handlers: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("naiad_cli.stop_signals.sleep", slept.append)
    recorder = Recorder()
    recorder.signals(grace=30.0).install()

    signal.raise_signal(TERM)

    assert sorted([recorder.next(), recorder.next(), recorder.next()]) == ["end 1", "end in 37", "stop"]
    assert slept == [35.0]
    assert "the stop took 35 s and stands still: the models; the process ends; the main thread is in" in caplog.text
