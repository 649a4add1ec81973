"""Executions that hang are logged, with a clock of the test's own."""

import asyncio
import threading

import pytest

from naiad.reports import InstanceReport
from naiad_cli.long_executions import LongExecutions, locate_instance, watching_executions


class Version:
    """What is read of the report of a version."""

    def __init__(self, **busy: float) -> None:
        self.name, self.version = "fraud", 2
        self.instances = tuple(InstanceReport(name, "READY", busy_seconds=seconds) for name, seconds in busy.items())


def lines_of(caplog: pytest.LogCaptureFixture, *looks: Version | None) -> list[str]:
    remaining = iter(looks)

    def reports() -> list[Version]:
        version = next(remaining)
        return [] if version is None else [version]

    executions = LongExecutions(reports, lambda instance: f"in run (of {instance})")  # type: ignore[arg-type]
    for _ in looks:
        executions.check()
    return [record.getMessage() for record in caplog.records]


def test_an_execution_of_a_minute_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    lines = lines_of(caplog, Version(a=59.0, b=0.0), Version(a=64.0, b=5.0), Version(a=69.0, b=0.0))

    assert lines == ["instance 'a' of model 'fraud' version 2 has executed one batch for 64 s, in run (of a)"]


def test_an_idle_instance_of_the_same_name_hides_no_execution(caplog: pytest.LogCaptureFixture) -> None:
    version = Version()
    version.instances = tuple(InstanceReport("a", "READY", busy_seconds=seconds) for seconds in (64.0, 0.0))

    (line,) = lines_of(caplog, version)

    assert line.startswith("instance 'a' of model 'fraud' version 2 has executed one batch for 64 s")


def test_the_next_long_execution_is_logged_when_it_takes_twice_as_long(caplog: pytest.LogCaptureFixture) -> None:
    lines = lines_of(caplog, *(Version(a=seconds) for seconds in (60.0, 70.0, 0.0, 139.0, 141.0, 146.0)))

    assert [line.rsplit(" s, ")[0].split()[-1] for line in lines] == ["60", "141"]


def test_a_model_that_was_loaded_anew_is_logged_after_a_minute_again(caplog: pytest.LogCaptureFixture) -> None:
    assert len(lines_of(caplog, Version(a=100.0), None, Version(a=60.0))) == 2


def test_the_thread_of_an_instance_is_located() -> None:
    entered, may_end = threading.Event(), threading.Event()

    def stand() -> None:
        entered.set()
        may_end.wait(30)

    thread = threading.Thread(target=stand, name="naiad-stuck_0")
    thread.start()
    assert entered.wait(30)
    try:
        location = locate_instance("stuck_0")
    finally:
        may_end.set()
        thread.join()

    assert "called by stand (" in location
    assert locate_instance("stuck_0") == ""


def test_a_server_is_checked_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("naiad_cli.long_executions.SECONDS_BETWEEN", 0.001)
    looked = 0

    async def run() -> None:
        looks = asyncio.Event()

        def reports() -> list[Version]:
            nonlocal looked
            looked += 1
            if looked == 2:
                looks.set()
            return []

        with watching_executions(asyncio.get_running_loop(), reports):  # type: ignore[arg-type]
            await looks.wait()

    asyncio.run(run())

    assert looked >= 2
