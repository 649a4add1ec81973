"""Counting: what a version's counters add up, and what its queue tells them."""

from time import time_ns

from naiad._engine.statistics import FailureReason, VersionCounters
from naiad.backend import MemoryUsage
from naiad.errors import InternalError, InvalidArgumentError
from naiad.reports import BatchStatistics, Duration, ModelStatistics
from naiad_testing.loops import jump, turns

from .driven import DrivenQueue
from .schedulers import Pairs

NOTHING = Duration()


MS = 1_000_000


def test_new_counters_are_all_zero() -> None:
    counters = VersionCounters()

    assert counters.report("m", 3, ()) == ModelStatistics(
        name="m",
        version=3,
        last_inference=0,
        inference_count=0,
        execution_count=0,
        success=NOTHING,
        fail=NOTHING,
        queue=NOTHING,
        compute_input=NOTHING,
        compute_infer=NOTHING,
        compute_output=NOTHING,
        cache_hit=NOTHING,
        cache_miss=NOTHING,
    )


def test_an_execution_is_charged_to_every_request_of_it_and_once_to_its_batch_size() -> None:
    counters = VersionCounters()
    before = time_ns() // MS

    counters.by_slot[0].executed(6, (1 * MS, 20 * MS, 3 * MS))
    counters.by_slot[0].succeeded(
        items=6,
        totals=[20 * MS, 30 * MS, 40 * MS],
        queues=[1 * MS, 4 * MS, 10 * MS],
        phases=(1 * MS, 20 * MS, 3 * MS),
    )

    report = counters.report("m", 1, ())
    assert (report.inference_count, report.execution_count) == (6, 1)
    assert (report.success, report.queue) == (Duration(3, 90 * MS), Duration(3, 15 * MS))
    assert report.compute_input == Duration(3, 3 * MS)
    assert report.compute_infer == Duration(3, 60 * MS)
    assert report.compute_output == Duration(3, 9 * MS)
    assert report.batch_stats == (BatchStatistics(6, Duration(1, 1 * MS), Duration(1, 20 * MS), Duration(1, 3 * MS)),)
    assert before <= report.last_inference <= time_ns() // MS


def test_batch_sizes_are_counted_apart_and_in_order() -> None:
    counters = VersionCounters()

    for size in (4, 1, 4):
        counters.by_slot[0].executed(size, (1, 2, 3))

    report = counters.report("m", 1, ())
    assert [(each.batch_size, each.compute_infer) for each in report.batch_stats] == [
        (1, Duration(1, 2)),
        (4, Duration(2, 4)),
    ]


def test_failures_and_reasons_are_counted() -> None:
    counters = VersionCounters()

    counters.failed(7, 2, FailureReason.BACKEND)
    counters.failed(1, 1, FailureReason.OTHER)
    for reason in ("full", "delay", "full"):
        counters.by_slot[0].closed(reason)

    report = counters.report("m", 1, [MemoryUsage("CPU", 0, 99)])
    assert report.fail == Duration(3, 8)
    assert report.batch_reasons == {"full": 2, "delay": 1}
    assert report.memory_usage == (MemoryUsage("CPU", 0, 99),)


def test_what_the_instances_on_several_gpus_execute_is_reported_together() -> None:
    counters = VersionCounters(devices=(0, 1, 0))

    for slot in (0, 1, 2):
        counters.by_slot[slot].executed(4, (1, 2, 3))
        counters.by_slot[slot].succeeded(4, [10], [1], (1, 2, 3))

    report = counters.report("m", 1, ())
    assert (report.inference_count, report.execution_count, report.success) == (12, 3, Duration(3, 30))
    assert report.batch_stats == (BatchStatistics(4, Duration(3, 3), Duration(3, 6), Duration(3, 9)),)
    assert {device: each.successes for device, each in counters.by_device.items()} == {0: 2, 1: 1}


async def test_times_run_from_arrival_over_the_start_to_the_marked_borders() -> None:
    driven = DrivenQueue()
    driven.submit("a", batch_size=2)
    await turns()

    driven.finish(at_ms=(10, 11, 31, 34))

    statistics = driven.statistics
    assert (statistics.success, statistics.queue) == (Duration(1, 34 * MS), Duration(1, 10 * MS))
    assert statistics.compute_input == Duration(1, 1 * MS)
    assert statistics.compute_infer == Duration(1, 20 * MS)
    assert statistics.compute_output == Duration(1, 3 * MS)


async def test_the_duration_of_a_batch_is_charged_to_every_request_of_it() -> None:
    driven = DrivenQueue(Pairs)
    driven.submit("a", batch_size=2)
    driven.submit("b", batch_size=3)
    await turns()

    driven.finish(at_ms=(10, 11, 31, 34))

    statistics = driven.statistics
    assert (statistics.inference_count, statistics.execution_count) == (5, 1)
    assert statistics.compute_infer == Duration(2, 40 * MS)
    (batch,) = statistics.batch_stats
    assert (batch.batch_size, batch.compute_infer) == (5, Duration(1, 20 * MS))


async def test_each_way_to_fail_counts_one_failure() -> None:
    driven = DrivenQueue(slots=2)
    driven.submit("fails")
    driven.submit("expires", seconds=5.0)
    cancelled = driven.submit("leaves")
    dropped = driven.submit("waits")
    await turns()

    driven.fail(InternalError("no"))
    await jump(5.1)
    cancelled.cancel()
    driven.queue.fail_all(InternalError("stop"))
    dropped.cancel()

    statistics = driven.statistics
    assert statistics.fail.count == 4
    assert (statistics.success.count, statistics.inference_count, statistics.execution_count) == (0, 0, 0)
    assert driven.outcomes["leaves"] == []


async def test_a_batch_whose_every_request_failed_is_an_execution_all_the_same() -> None:
    driven = DrivenQueue(Pairs)
    driven.submit("a")
    driven.submit("b", batch_size=3)
    await turns()

    driven.finish(errors={"a": InvalidArgumentError("no"), "b": InvalidArgumentError("no")})

    statistics = driven.statistics
    assert (statistics.execution_count, statistics.inference_count, statistics.fail.count) == (1, 0, 2)
    assert [each.batch_size for each in statistics.batch_stats] == [4]


async def test_reasons_of_batches_are_counted() -> None:
    driven = DrivenQueue(Pairs)
    for name in "abcd":
        driven.submit(name)
    await turns()
    driven.finish()

    assert driven.statistics.batch_reasons == {"pair": 2}
