"""The reasons of batches are told as plain text, whatever the scheduler makes them of."""

from enum import StrEnum

from naiad._kernel.statistics import VersionCounters


class Reason(StrEnum):
    FULL = "full"


def test_a_reason_from_an_enumeration_is_reported_as_plain_text() -> None:
    counters = VersionCounters()
    counters.closed(Reason.FULL)

    reasons = counters.report("m", 1, ()).batch_reasons

    assert reasons == {"full": 1}
    assert {type(reason) for reason in reasons} == {str}
