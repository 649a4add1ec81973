"""The published check of sequences finds schedulers out: each of these is the real one with one mistake."""

from dataclasses import replace

import pytest

from naiad.scheduler import DropReason
from naiad_scheduler_sequence.slots import Slots
from naiad_testing.history import Arrival
from naiad_testing.sequences import Crash, SequenceHistory, check_sequence_scheduler, random_sequence_histories
from naiad_testing.simulation import ContractBroken


def check(make, **more):
    keywords = {"max_batch_size": 2, "slots": 2, "idle_limit": 0.05, "keeps_rows": True, "instances": 1, **more}
    check_sequence_scheduler(make, **{"histories": random_sequence_histories(count=20, instances=1), **keywords})


@pytest.fixture
def broken(direct):
    """Makes schedulers whose decisions go through a function before the driver gets them."""

    def make(change):
        class Broken:
            def __init__(self):
                self._real = direct(idle_ms=50)
                self.arrive, self.settle, self.lost = self._real.arrive, self._real.settle, self._real.lost

            def decide(self, now, idle):
                return change(self._real.decide(now, idle))

        return Broken

    return make


def each_row(change):
    """A change of decisions that changes every row with a request."""

    def changed(decision):
        dispatches = tuple(
            replace(sent, rows=tuple(change(row) if row.ticket else row for row in sent.rows))
            for sent in decision.dispatches
        )
        return replace(decision, dispatches=dispatches)

    return changed


def test_the_real_one_passes(direct):
    check(lambda: direct(idle_ms=50))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (each_row(lambda row: replace(row, start=False)), "is the first of its sequence, and is not marked so"),
        (each_row(lambda row: replace(row, start=True)), "is marked as a start"),
        (each_row(lambda row: replace(row, end=False)), "is marked as the last of its sequence, or is it without"),
        (each_row(lambda row: replace(row, sequence=row.sequence + row.ticket)), "it belongs to|whose number is not"),
        (each_row(lambda row: replace(row, sequence=0)), "whose number is not a new one"),
        (
            lambda decision: replace(decision, ended=()),
            "have neither ended nor are they over|which has 2 sequences already",
        ),
        (lambda decision: replace(decision, drops=()), "never answered"),
        (lambda decision: replace(decision, ended=decision.ended * 2), "which has no such one"),
        (
            lambda decision: replace(decision, ended=tuple(replace(end, reason="unload") for end in decision.ended)),
            "which has not happened",
        ),
        (
            lambda decision: replace(
                decision, drops=tuple(replace(drop, reason=DropReason.QUEUE_FULL) for drop in decision.drops)
            ),
            "which has not happened",
        ),
    ],
)
def test_what_is_said_wrongly_of_sequences_is_noticed(broken, change, complaint):
    with pytest.raises(ContractBroken, match=complaint):
        check(broken(change))


def test_rows_that_move_are_noticed(direct):
    class Moving(Slots):
        def row_of(self, slot):
            return 0

    def make():
        scheduler = direct(idle_ms=50)
        scheduler._slots = Moving(1, 2)
        return scheduler

    with pytest.raises(ContractBroken):
        check(make)


def test_a_slot_that_leaks_is_noticed(direct):
    class Leaking(Slots):
        def give_back(self, slot):
            if slot != 1:
                super().give_back(slot)

    def make():
        scheduler = direct(idle_ms=50)
        scheduler._slots = Leaking(1, 2)
        return scheduler

    with pytest.raises(ContractBroken, match="1 of 2 slots could not be had again"):
        check(make)


@pytest.mark.parametrize("wrong_ms", [40, 60])
def test_silence_that_is_too_short_or_too_long_is_noticed(direct, wrong_ms):
    with pytest.raises(ContractBroken, match=r"s of silence, not 0\.05 s"):
        check(lambda: direct(idle_ms=wrong_ms))


def test_more_sequences_than_slots_are_noticed(direct):
    with pytest.raises(ContractBroken, match="which has 1 sequences already"):
        check(lambda: direct(idle_ms=50), slots=1)


def test_rows_without_a_request_are_noticed_where_rows_mean_nothing(direct):
    with pytest.raises(ContractBroken, match="has a row without a request"):
        check(lambda: direct(idle_ms=50), keeps_rows=False)


def test_a_batch_that_is_too_large_is_noticed(direct):
    with pytest.raises(ContractBroken, match="has 2 rows, more than 1"):
        check(lambda: direct(idle_ms=50), max_batch_size=1)


def test_a_request_that_is_refused_without_a_reason_is_noticed(direct):
    def make():
        scheduler = direct(idle_ms=50)
        scheduler._open = {}
        real = scheduler.arrive

        def arrive(ticket):
            return scheduler._admission.no_start(ticket) if ticket.id == 3 else real(ticket)

        scheduler.arrive = arrive
        return scheduler

    story = [Arrival(0.0, sequence_id=1, sequence_start=True), *[Arrival(0.001, sequence_id=1)] * 3]
    with pytest.raises(ContractBroken, match="ticket 3 was refused, though it starts a sequence or belongs to one"):
        check(make, histories=[SequenceHistory(tuple(story))])


def test_a_crash_that_is_forgotten_is_noticed(direct):
    def make():
        scheduler = direct(idle_ms=50)
        scheduler.lost = lambda instance, now: None
        return scheduler

    story = [Arrival(0.0, sequence_id=1, sequence_start=True), Arrival(0.03, sequence_id=1)]
    with pytest.raises(ContractBroken, match="belongs to none"):
        check(make, histories=[SequenceHistory(tuple(story), (Crash(0.02, 0),))])
