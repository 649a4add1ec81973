"""Counting responses by their place among a request's responses."""

from naiad_statistics.reports import Duration, ResponseStatistics
from naiad_statistics.versions import FailureReason, ResponseKind, VersionCounters

FIRST, SECOND = 0, 1


def test_responses_are_counted_by_their_index_and_by_what_became_of_them() -> None:
    counters = VersionCounters()

    counters.responded(FIRST, 20, 3, ResponseKind.SUCCESS)
    counters.responded(SECOND, 30, 4, ResponseKind.FAIL)
    counters.responded(FIRST, 50, 6, ResponseKind.SUCCESS)
    counters.responded(SECOND, 7, 0, ResponseKind.EMPTY_RESPONSE)
    counters.responded(SECOND, 9, 1, ResponseKind.CANCEL)

    assert counters.report("m", 1, ()).response_stats == {
        "0": ResponseStatistics(Duration(2, 70), Duration(2, 9), success=Duration(2, 79)),
        "1": ResponseStatistics(
            Duration(1, 30),
            Duration(1, 4),
            fail=Duration(1, 34),
            empty_response=Duration(1, 7),
            cancel=Duration(1, 10),
        ),
    }


def test_an_endless_stream_does_not_grow_the_counters() -> None:
    counters = VersionCounters()

    for index in range(1500):
        counters.responded(index, 1, 1, ResponseKind.SUCCESS)

    counted = counters.report("m", 1, ()).response_stats
    assert list(counted) == [str(index) for index in range(1001)]
    assert (counted["999"].success.count, counted["1000"].success.count) == (1, 500)


def test_models_that_answer_once_have_no_response_statistics() -> None:
    counters = VersionCounters()
    counters.by_slot[0].succeeded(items=1, totals=[9], queues=[1], phases=(1, 2, 3))

    assert counters.report("m", 1, ()).response_stats == {}


def test_failures_add_up_over_their_reasons() -> None:
    counters = VersionCounters()

    counters.failed(10, 2, FailureReason.REJECTED)
    counters.failed(5, 1, FailureReason.CANCELED)
    counters.failed(1, 1, FailureReason.OTHER)

    assert counters.report("m", 1, ()).fail == Duration(4, 16)
