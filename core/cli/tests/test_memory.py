"""Memory of a server process: returned to the system when idle, and when it has grown very much."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from naiad_cli.memory import MemoryTrimmer, resident_bytes, trimming_memory

MIB = 2**20


class Process:
    """A process with so many MiB and requests in flight; what was done to it is in `events`."""

    def __init__(self, resident: int) -> None:
        self.resident = resident
        self.in_flight = 0
        self.garbage = 0
        self.free = 0
        self.seconds = 0.0
        self.events: list[str] = []
        self.young = 0
        self.trimmer = MemoryTrimmer(
            self.read, lambda: self.in_flight > 0, self.collect, lambda: self.young, pages=self
        )

    def read(self) -> int:
        return self.resident * MIB

    def collect(self, generation: int) -> None:
        self.young = 0
        if generation < 2:
            self.events.append("collect young")
            return
        self.events.append("collect")
        self.resident -= self.garbage
        self.garbage = 0

    def give_back(self) -> None:
        self.events.append("trim")
        self.resident -= self.free
        self.free = 0

    def collects_in_next_check(self) -> bool:
        before = self.events.count("collect")
        return self.check(1).count("collect") > before

    def grow_each_ten_seconds(self, second: int) -> None:
        if second % 10 == 5:
            self.resident, self.free = 400, 300

    def trims_in_next_check(self) -> bool:
        before = self.events.count("trim")
        return self.check(1).count("trim") > before

    def check(self, times: int = 1) -> list[str]:
        for _ in range(times):
            self.trimmer.check()
        return self.events


def test_an_idle_process_with_many_young_objects_collects_these() -> None:
    process = Process(100)
    process.young = 4_999
    assert process.check(10) == []

    process.young = 5_000

    assert process.check(10) == ["collect young"]


def test_young_objects_of_a_busy_process_stay() -> None:
    process = Process(100)
    process.in_flight, process.young = 1, 40_000

    assert process.check(100) == []


def test_each_twentieth_collection_of_young_objects_is_one_of_all() -> None:
    process = Process(100)
    process.check()

    for _ in range(40):
        process.young = 5_000
        process.check()

    assert process.events == ([*["collect young"] * 19, "collect"]) * 2


def test_free_pages_are_given_back_once_though_the_growth_stays() -> None:
    process = Process(100)
    process.resident, process.free = 140, 10

    assert process.check(100) == ["trim"]


def test_pages_that_were_in_use_at_a_trim_are_given_back_when_the_process_is_idle_again() -> None:
    process = Process(100)
    process.resident = 140
    process.check(3)

    process.in_flight = 1
    process.check()
    process.in_flight, process.free = 0, 40

    assert process.check(100) == ["trim", "trim"]
    assert process.resident == 100


class Timer:
    """A timer of the loop, which fires when the test says so."""

    def __init__(self, seconds: float, fire: Callable[[], None]) -> None:
        self.seconds = seconds
        self.fire = fire
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class TimerLoop:
    """The one method of an event loop that the trimmer uses."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, callback))
        return self.timers[-1]


def test_a_process_that_does_not_grow_is_left_alone() -> None:
    process = Process(100)
    process.resident = 125

    assert process.check(100) == []


def test_an_idle_process_that_has_grown_collects_once() -> None:
    process = Process(100)
    process.resident, process.garbage = 400, 280

    assert process.check(100) == ["collect"]
    assert process.resident == 120


def test_growth_that_stays_is_looked_at_again_when_there_is_more_of_it() -> None:
    process = Process(100)
    process.resident = 400
    process.check(5)
    before = process.events.count("collect")

    process.resident = 560
    process.check(1)
    less = process.events.count("collect")
    process.resident = 600
    process.check(1)

    assert (before, less, process.events.count("collect")) == (1, 1, 2)


def test_growth_that_stays_is_tried_again_ever_more_seldom() -> None:
    process = Process(100)
    process.resident = 400

    moments = [second for second in range(130) if process.collects_in_next_check()]

    assert moments == [1, 8, 24, 56, 120]


def test_what_was_in_use_at_the_last_collection_is_freed_later() -> None:
    process = Process(100)
    process.resident = 400
    process.check(5)

    process.garbage = 280
    process.check(10)

    assert process.resident == 120


def test_growth_after_memory_came_back_counts_from_the_lower_mark() -> None:
    process = Process(400)
    process.resident = 100
    process.check()

    process.resident, process.garbage = 200, 90

    assert process.check(2) == ["collect"]


def test_a_process_is_idle_only_after_a_second_without_requests() -> None:
    process = Process(100)
    process.resident, process.in_flight = 400, 1
    process.garbage = 280
    process.check(10)

    process.in_flight = 0

    assert process.check(1) == []
    assert process.check(1) == ["collect"]


def test_a_busy_process_collects_only_when_it_has_grown_very_much() -> None:
    process = Process(100)
    process.in_flight = 1
    process.resident, process.garbage = 600, 500
    assert process.check(50) == []

    process.resident = 700

    assert process.check(5) == ["collect"]


def test_a_busy_process_gives_free_pages_back_once_though_the_growth_stays() -> None:
    process = Process(100)
    process.in_flight = 1
    process.resident, process.free = 400, 40

    assert process.check(300) == ["trim"]
    assert process.resident == 360


def test_a_busy_process_that_grows_all_the_time_gives_free_pages_back_once_a_minute() -> None:
    process = Process(100)
    process.in_flight = 1

    moments = []
    for second in range(1, 200):
        process.grow_each_ten_seconds(second)
        moments += [second] if process.trims_in_next_check() else []

    assert moments == [60, 120, 180]


def test_a_busy_process_gives_free_pages_back_more_seldom_the_longer_that_takes() -> None:
    process = Process(100)
    process.in_flight, process.seconds = 1, 0.1

    moments = []
    for second in range(1, 450):
        process.grow_each_ten_seconds(second)
        moments += [second] if process.trims_in_next_check() else []

    assert moments == [200, 400]


def test_a_busy_process_that_has_grown_little_keeps_its_free_pages() -> None:
    process = Process(100)
    process.in_flight = 1
    process.resident, process.free = 185, 80

    assert process.check(300) == []


def test_a_process_that_was_busy_collects_when_it_is_idle_though_it_collected_before() -> None:
    process = Process(100)
    process.in_flight, process.resident = 1, 800
    process.check(10)

    process.in_flight = 0

    assert process.check(5) == ["collect", "collect", "trim"]


def test_the_care_looks_once_a_second_until_it_ends() -> None:
    loop = TimerLoop()
    looks: list[int] = []

    def has_work() -> bool:
        looks.append(1)
        return True

    with trimming_memory(loop, has_work):
        for _ in range(3):
            loop.timers[-1].fire()

    assert len(looks) == 4
    assert [timer.seconds for timer in loop.timers] == [1.0] * 4
    assert loop.timers[-1].is_cancelled
    assert resident_bytes() > 10 * MIB


@contextmanager
def no_more_open_files() -> Iterator[None]:
    """Every further file that this process opens is refused."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_process_that_can_open_no_file_looks_again_a_second_later() -> None:
    loop = TimerLoop()
    looks: list[int] = []

    with trimming_memory(loop, lambda: bool(looks.append(1))):
        with no_more_open_files():
            loop.timers[-1].fire()
        loop.timers[-1].fire()

    assert len(looks) == 2
    assert [timer.seconds for timer in loop.timers] == [1.0] * 3
