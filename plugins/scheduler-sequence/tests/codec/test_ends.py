"""How sequences end: notifications of instances, errors of callers, and what remains in the queue."""

import pytest

from naiad.errors import (
    InternalError,
    InvalidArgumentError,
    ModelFailedError,
    ModelNotReadyError,
    QueueTimeoutError,
    RequestCancelledError,
    UnavailableError,
)
from naiad.scheduler import Decision, Dispatch, Drop, DropReason
from naiad_kit.sequences import Row, SequenceEndReason
from naiad_testing.loops import turns

from .driven import Drive, end, failing, summing


@pytest.mark.parametrize("model", [summing, failing])
async def test_after_its_last_request_a_sequence_is_over_however_that_went(drive: Drive, model) -> None:
    driven = await drive(instances=2)
    driven.submit("a", who="x", sequence_end=True)
    driven.submit("b", who="y")
    await driven.decide(Row(1, 1, start=True, end=True), Row(2, 2, start=True), slot=1)
    assert driven.ended == []

    driven.answer(model)

    assert driven.ended == [(1, "x", "end")]


async def test_an_instance_hears_of_the_last_end_before_it_gets_the_next_batch(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", who=1)
    await driven.decide(Row(1, 1, start=True, end=True))
    driven.submit("b", who=2)
    driven.scheduler.next = [Decision((Dispatch(0, (2,), "next", (Row(2, 2, start=True),)),))]
    driven.log.clear()

    driven.answer(summing)

    assert driven.ended == [(0, 1, "end")]
    assert driven.log == ["sequence_ended", "batch"]


@pytest.mark.parametrize("reason", [SequenceEndReason.IDLE, SequenceEndReason.CANCELLED])
async def test_a_sequence_that_its_scheduler_ends_is_reported_with_the_reason(
    drive: Drive, reason: SequenceEndReason
) -> None:
    driven = await drive()
    driven.submit("a", who=5)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)

    await driven.decide(ended=[end(1, reason), end(77, reason)])

    assert driven.ended == [(0, 5, str(reason))]


async def test_an_end_is_reported_before_the_same_id_starts_anew_in_the_same_decision(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", who=5)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    driven.submit("b", who=5, sequence_start=True)
    driven.log.clear()

    await driven.decide(Row(2, 2, start=True), ended=[end(1)])

    assert driven.log == ["sequence_ended", "batch"]


async def test_a_model_that_goes_out_of_service_hears_of_every_sequence(drive: Drive) -> None:
    driven = await drive()
    for who in (1, 2):
        driven.submit(str(who), who=who)
    await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
    driven.answer(summing)

    await driven.unload()

    assert driven.ended == [(0, 1, "unload"), (0, 2, "unload")]
    assert driven.sequences.live == 0


async def test_an_instance_that_died_hears_nothing_and_its_scheduler_does(drive: Drive) -> None:
    driven = await drive(instances=2)
    driven.submit("a", who=1)
    driven.submit("b", who=2)
    await driven.decide(Row(1, 1, start=True))
    await driven.decide(Row(2, 2, start=True), slot=1)

    driven.die("it died")

    assert driven.ended == []
    assert driven.scheduler.calls[-2:] == [("lost", 0), ("settle", 1)]
    assert driven.live == 1
    decisions = driven.scheduler.decisions_asked_for
    await turns()
    assert driven.scheduler.decisions_asked_for == decisions + 1


async def test_a_scheduler_that_fails_ends_all_sequences(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", who=1)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)

    await driven.decide(Row(99, 1))

    assert driven.ended == [(0, 1, "cancelled")]


@pytest.mark.parametrize(
    ("reason", "detail", "kind", "phrase"),
    [
        (DropReason.CANCELLED, "", RequestCancelledError, "an earlier request of its sequence was taken back"),
        (DropReason.LOST, "", UnavailableError, "the sequence must start anew"),
        (
            DropReason.TIMEOUT,
            "its time is over: no slot",
            QueueTimeoutError,
            "its time is over",
        ),
        (DropReason.INVALID, "must specify the START flag", InvalidArgumentError, "must specify the START flag"),
    ],
)
async def test_callers_whose_sequence_is_over_are_reported_why(
    drive: Drive, reason: DropReason, detail: str, kind: type[Exception], phrase: str
) -> None:
    driven = await drive()
    driven.submit("a")
    driven.submit("b")

    await driven.follow(Decision(drops=(Drop((1, 2), reason, detail),)))

    for name in "ab":
        assert type(driven.error(name)) is kind
        assert phrase in str(driven.error(name))
    assert driven.outstanding == 0


async def test_a_decision_is_asked_for_when_settling_says_so(drive: Drive) -> None:
    driven = await drive()
    call = driven.submit("a")
    await turns()
    decisions = driven.scheduler.decisions_asked_for

    call.cancel()
    await turns()
    assert driven.scheduler.decisions_asked_for == decisions
    driven.scheduler.wants_decision = True
    driven.submit("b").cancel()
    driven.submit("c").cancel()
    await turns()

    assert driven.scheduler.decisions_asked_for == decisions + 1


async def test_a_scheduler_that_fails_to_hear_of_a_loss_starts_anew(drive: Drive) -> None:
    driven = await drive(instances=2)
    driven.submit("a")

    def lost(instance: int, now: float) -> None:
        raise ArithmeticError("lost is beyond me")

    driven.scheduler.lost = lost  # type: ignore[method-assign]
    driven.die("it died", slot=1)

    assert "lost is beyond me" in str(driven.error("a"))
    assert isinstance(driven.error("a"), InternalError)
    assert len(driven.schedulers) == 2


# Sequences that are open: a queue is drained when no further request of theirs can come


async def test_a_sequence_is_open_from_its_first_request_to_its_last(drive: Drive) -> None:
    driven, unused = await drive(), await drive()
    driven.submit("a", sequence_start=True)
    assert driven.is_open(7)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    for each in (driven, unused):
        await each.unload()
    assert (driven.is_closed, unused.is_closed) == (False, True)

    driven.submit("b", sequence_end=True)

    assert not driven.is_open(7)
    await driven.decide(Row(2, 1, end=True))
    assert not driven.is_closed
    driven.answer(summing)
    await turns()
    assert driven.is_closed


async def test_a_request_that_starts_and_ends_a_sequence_leaves_nothing_open(drive: Drive) -> None:
    driven = await drive()

    driven.submit("a", sequence_start=True, sequence_end=True)

    assert not driven.is_open(7)


async def test_a_sequence_that_was_refused_is_not_open(drive: Drive) -> None:
    driven = await drive()
    driven.scheduler.refuse = Drop((1,), DropReason.INVALID, "no")

    with pytest.raises(InvalidArgumentError, match="no"):
        driven.submit("a", sequence_start=True)

    assert not driven.is_open(7)


@pytest.mark.parametrize("how", ["idle", "taken back", "dropped", "lost", "scheduler", "left"])
async def test_a_model_that_is_unloaded_closes_after_every_kind_of_end(drive: Drive, how: str) -> None:
    driven = await drive()
    driven.submit("a", sequence_start=True)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    await driven.unload()
    assert not driven.is_closed

    if how == "idle":
        await driven.decide(ended=[end(1)])
    elif how == "taken back":
        driven.submit("b").cancel()
    elif how == "dropped":
        driven.submit("b")
        await driven.follow(Decision(drops=(Drop((2,), DropReason.TIMEOUT),)))
    elif how == "lost":
        driven.die("it died")
    elif how == "scheduler":
        await driven.decide(Row(99, 1))
    else:
        with pytest.raises(ModelNotReadyError):
            driven.submit("b", sequence_start=True)
    await turns()

    assert driven.is_closed


async def test_an_earlier_sequence_of_the_same_id_ends_without_the_later_one(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", sequence_start=True)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    last = driven.submit("b", sequence_end=True)
    driven.submit("c", sequence_start=True)

    last.cancel()
    await driven.decide(ended=[end(1, SequenceEndReason.CANCELLED)])

    assert driven.is_open(7)


async def test_a_failed_request_leaves_its_sequence_open(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", sequence_start=True)
    await driven.decide(Row(1, 1, start=True))

    driven.answer(failing)

    assert isinstance(driven.error("a"), ModelFailedError)
    assert driven.is_open(7)
    assert driven.ended == []
