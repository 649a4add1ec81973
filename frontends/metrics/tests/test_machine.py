"""What the machine tells of its processors and its memory."""

import os

import pytest

from naiad_metrics.machine import Machine, MachineReading

PAGE = os.sysconf("SC_PAGESIZE")


class Files(dict[str, str]):
    """/proc as a test writes it; counts how often the memory was looked at."""

    looks = 0

    def __call__(self, path: str) -> str:
        self.looks += path == "/proc/meminfo"
        return self.get(path, "")


def files(busy: int = 0, idle: int = 0, waiting: int = 0) -> Files:
    return Files(
        {
            "/proc/stat": f"cpu  {busy} 0 0 {idle} {waiting} 0 0 0 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n",
            "/proc/meminfo": "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n",
            "/proc/self/statm": "900 70 30 1 0 200 0\n",
        }
    )


def test_memory_is_in_use_when_it_is_not_available() -> None:
    reading = Machine(2.0, files()).reading(now=0.0)

    assert reading == MachineReading(0.0, total=1000 * 1024, used=600 * 1024, resident=70 * PAGE)


def test_processors_are_busy_for_the_part_of_the_time_since_the_last_reading_that_was_not_idle() -> None:
    proc = files(busy=100, idle=100)
    machine = Machine(2.0, proc)
    proc |= files(busy=130, idle=160, waiting=10)

    first = machine.reading(now=0.0)
    proc |= files(busy=140, idle=160, waiting=10)
    second = machine.reading(now=2.0)

    assert (first.utilization, second.utilization) == (pytest.approx(0.3), 1.0)


def test_two_readings_at_the_same_time_give_the_same_utilization() -> None:
    proc = files(busy=100, idle=100)
    machine = Machine(2.0, proc)
    proc |= files(busy=150, idle=150)

    assert [machine.reading(now).utilization for now in (0.0, 2.0)] == [0.5, 0.5]


def test_the_machine_is_not_looked_at_more_often_than_the_interval_says() -> None:
    proc = files()
    machine = Machine(2.0, proc)

    for now in (0.0, 1.0, 1.99, 2.0, 3.9):
        machine.reading(now)

    assert proc.looks == 2


@pytest.mark.parametrize("message", ["", "nothing of use\n"])
def test_what_a_machine_does_not_report_is_not_known(message: str) -> None:
    proc = Files(dict.fromkeys(files(), message))

    assert Machine(2.0, proc).reading(now=0.0) == MachineReading()


def test_a_real_linux_tells_everything() -> None:
    reading = Machine(2.0).reading(now=0.0)

    assert reading.utilization is not None
    assert reading.total is not None
    assert reading.used is not None
    assert reading.resident is not None
    assert 0 <= reading.utilization <= 1
    assert 1_000_000 < reading.resident < reading.total
    assert 0 < reading.used < reading.total
