"""Counting: what a version's counters add up, and what its queue tells them."""

from naiad.errors import InternalError, InvalidArgumentError
from naiad_statistics.reports import Duration
from naiad_testing.loops import jump, turns

from .driven import DrivenQueue
from .schedulers import Pairs

MS = 1_000_000


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
