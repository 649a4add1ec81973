"""The reasons of batches are reported as plain text, of whatever type they are."""

from enum import StrEnum

from naiad._engine.statistics import VersionCounters


class Reason(StrEnum):
    FULL = "full"


def test_a_reason_from_an_enumeration_is_reported_as_plain_text() -> None:
    counters = VersionCounters()
    counters.by_slot[0].closed(Reason.FULL)

    reasons = counters.report("m", 1, ()).batch_reasons

    assert reasons == {"full": 1}
    assert {type(reason) for reason in reasons} == {str}
