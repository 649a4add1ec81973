"""Models of sequences that answer through senders."""

import pytest

from naiad.errors import ModelFailedError
from naiad_kit.senders import NullSender
from naiad_kit.sequences import Row
from naiad_testing.loops import turns

from .driven import SUM, Drive, config_of, reply, sent

DECOUPLED = "model_transaction_policy { decoupled: true }"


async def test_a_state_that_is_sent_counts_when_all_is_sent(drive: Drive) -> None:
    driven = await drive(config_of(SUM, DECOUPLED))
    driven.submit("a", 3)
    await driven.decide(Row(0), Row(1, 1, start=True))
    sender = driven.batch().sender(1)
    driven.answer(lambda batch: [None, None])
    sender.send(reply(1, state=10))
    sender.send(reply(2, state=20))
    await turns()
    driven.submit("b")
    await driven.decide(Row(2, 1))
    before = driven.batch().input("SUM_IN").tolist()
    driven.answer(lambda batch: [reply(0)])

    sender.send(None, final=True)
    await turns()
    driven.submit("c")
    await driven.decide(Row(3, 1))

    assert sent(driven, "a") == [1, 2, "end"]
    assert before == [[0]]
    assert driven.batch().input("SUM_IN").tolist() == [[20]]


async def test_a_stream_that_ends_late_leaves_no_state_to_its_sequence_that_started_anew(drive: Drive) -> None:
    driven = await drive(config_of(SUM, DECOUPLED))
    driven.submit("a")
    await driven.decide(Row(1, 1, start=True))
    sender = driven.batch().sender(0)
    driven.answer(lambda batch: [None])
    sender.send(reply(1, state=10))
    driven.submit("b", sequence_start=True)
    await driven.decide(Row(2, 1, start=True))
    driven.batch().sender(0).send(reply(2, state=20), final=True)
    driven.answer(lambda batch: [None])
    await turns()

    sender.send(None, final=True)
    await turns()
    driven.submit("c")
    await driven.decide(Row(3, 1))

    assert driven.batch().input("SUM_IN").tolist() == [[20]]


@pytest.mark.parametrize("decoupled", ["", DECOUPLED])
async def test_a_stream_that_fails_leaves_the_state_as_it_was(drive: Drive, decoupled: str) -> None:
    driven = await drive(config_of(SUM, decoupled))
    driven.submit("a")
    await driven.decide(Row(1, 1, start=True))
    sender = driven.batch().sender(0)
    sender.send(reply(1, state=10))
    sender.send(ModelFailedError("no"), final=True)
    driven.answer(lambda batch: [None])
    await turns()
    driven.submit("b")

    await driven.decide(Row(2, 1))

    assert driven.batch().input("SUM_IN").tolist() == [[0]]


async def test_a_model_that_is_not_decoupled_may_send_its_state_too(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True, end=True))
    sender = driven.batch().sender(0)
    sender.send(reply(5, state=6), final=True)

    driven.answer(lambda batch: [None])
    await turns()

    assert driven.value("a") == 5
    assert list(driven.response("a").outputs) == ["Y"]
    assert driven.ended == [(0, 7, "end")]


async def test_a_sequence_whose_last_request_streams_is_over_when_all_is_sent(drive: Drive) -> None:
    driven = await drive(config_of(SUM, DECOUPLED))
    driven.submit("a")
    await driven.decide(Row(1, 1, start=True, end=True))
    sender = driven.batch().sender(0)
    driven.answer(lambda batch: [None])
    await turns()
    assert driven.ended == []

    sender.send(None, final=True)
    await turns()

    assert driven.ended == [(0, 7, "end")]


async def test_whatever_is_sent_in_an_empty_row_goes_nowhere(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 3)
    await driven.decide(Row(0), Row(1, 1, start=True))
    sender = driven.batch().sender(0)

    assert isinstance(sender, NullSender)
    assert (sender.send(reply(1)), sender.post(reply(1)), sender.is_cancelled()) == (False, None, True)
    driven.answer(lambda batch: [None, reply(4)])

    assert driven.value("a") == 4


async def test_a_request_that_is_answered_twice_leaves_the_state_as_it_was(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a")
    await driven.decide(Row(1, 1, start=True))
    sender = driven.batch().sender(0)
    driven.answer(lambda batch: [reply(1, state=10)])
    await turns()
    driven.submit("b")

    await driven.decide(Row(2, 1))

    assert isinstance(driven.error("a"), ModelFailedError)
    assert driven.batch().input("SUM_IN").tolist() == [[0]]
    assert sender.is_cancelled()
