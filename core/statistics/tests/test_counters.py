"""The counters of a model version: what they add up, and what they report."""

from enum import StrEnum
from time import time_ns

from naiad_statistics.reports import BatchStatistics, Duration, MemoryUsage, ModelStatistics
from naiad_statistics.versions import FailureReason, VersionCounters

NOTHING = Duration()
MS = 1_000_000


class Reason(StrEnum):
    FULL = "full"


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


def test_a_reason_from_an_enumeration_is_reported_as_plain_text() -> None:
    counters = VersionCounters()
    counters.by_slot[0].closed(Reason.FULL)

    reasons = counters.report("m", 1, ()).batch_reasons

    assert reasons == {"full": 1}
    assert {type(reason) for reason in reasons} == {str}
