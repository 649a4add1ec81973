"""Implicit state: what a request leaves is what the next one of its sequence starts from."""

import numpy as np
import pytest

from naiad.backend import Reply
from naiad.errors import ModelFailedError
from naiad_kit.sequences import Row

from .driven import SUM, Drive, config_of, end, failing, summing

VARIABLE = 'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ -1 ] }'
SHOWN = 'output { name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ] }'


async def test_a_sequence_goes_on_from_what_its_last_request_left(drive: Drive) -> None:
    driven = await drive()
    values = {"a": 3, "b": 4, "c": 5}
    for ticket, (name, value) in enumerate(values.items(), 1):
        driven.submit(name, value)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(summing)

    assert [driven.value(name) for name in values] == [3, 7, 12]


async def test_sequences_of_one_batch_have_states_of_their_own_wherever_they_stand(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 1, who=1)
    driven.submit("b", 10, who=2)
    await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
    driven.answer(summing)
    driven.submit("c", 2, who=1)
    driven.submit("d", 20, who=2)

    await driven.decide(Row(4, 2), Row(0), Row(3, 1))
    driven.answer(summing)

    assert (driven.value("c"), driven.value("d")) == (3, 30)


async def test_a_start_begins_from_the_initial_state_again(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    driven.submit("b", 4, sequence_start=True)

    await driven.decide(Row(2, 1, start=True))
    driven.answer(summing)

    assert driven.value("b") == 4


async def test_a_request_that_fails_leaves_the_state_as_it_was(drive: Drive) -> None:
    driven = await drive()
    for ticket, model in enumerate([summing, failing, summing], 1):
        driven.submit(str(ticket), 10**ticket)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(model)

    assert isinstance(driven.error("2"), ModelFailedError)
    assert driven.value("3") == 1010


async def test_a_request_whose_response_is_refused_leaves_the_state_as_it_was(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 3, requested=("Y",))
    await driven.decide(Row(1, 1, start=True))
    driven.answer(lambda batch: {"SUM_OUT": batch.input("X")})
    driven.submit("b", 4)

    await driven.decide(Row(2, 1))
    driven.answer(summing)

    assert "output 'Y'" in str(driven.error("a"))
    assert driven.value("b") == 4


async def test_in_a_list_each_reply_has_its_own_state_and_an_error_keeps_the_old_one(drive: Drive) -> None:
    driven = await drive()
    one = np.ones((1, 1), np.int32)
    for name, who in (("a", 1), ("b", 2)):
        driven.submit(name, who=who)
    await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
    driven.answer(lambda batch: [Reply({"Y": one, "SUM_OUT": 5 * one}), Reply({"Y": one, "SUM_OUT": 6 * one})])
    for name, who in (("c", 1), ("d", 2)):
        driven.submit(name, who=who)
    await driven.decide(Row(3, 1), Row(4, 2))
    driven.answer(lambda batch: [ModelFailedError("no"), Reply({"Y": one, "SUM_OUT": 60 * one})])
    for name, who in (("e", 1), ("f", 2)):
        driven.submit(name, who=who)

    await driven.decide(Row(5, 1), Row(6, 2))

    assert driven.batch().input("SUM_IN").tolist() == [[5], [60]]


async def test_a_model_that_gives_no_state_leaves_it_as_it_was(drive: Drive) -> None:
    driven = await drive()
    for ticket, model in enumerate([summing, lambda batch: {"Y": batch.input("X")}, summing], 1):
        driven.submit(str(ticket), 10**ticket)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(model)

    assert driven.value("3") == 1010


async def test_a_state_is_not_reported_to_clients_unless_it_is_an_output_too(drive: Drive) -> None:
    hidden, shown = await drive(), await drive(config_of(SUM, SHOWN))

    for driven in (hidden, shown):
        driven.submit("a", 3)
        driven.submit("b", 3, who=8, requested=("Y",))
        await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
        driven.answer(summing)

    assert list(hidden.response("a").outputs) == ["Y"]
    assert shown.response("a").outputs["SUM_OUT"].array.tolist() == [[3]]
    assert list(shown.response("b").outputs) == ["Y"]


@pytest.mark.parametrize("shown", ["", SHOWN])
async def test_a_model_whose_outputs_are_not_declared_keeps_its_states_all_the_same(drive: Drive, shown: str) -> None:
    driven = await drive(config_of(SUM, shown), strict=False)
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    driven.submit("b", 4)

    await driven.decide(Row(2, 1))
    driven.answer(summing)

    assert driven.value("b") == 7


async def test_nothing_is_kept_of_a_sequence_that_is_over(drive: Drive) -> None:
    driven = await drive()
    for who in (1, 2, 3):
        driven.submit(str(who), who, who=who)
    await driven.decide(Row(1, 1, start=True, end=True), Row(2, 2, start=True), Row(3, 3, start=True))
    driven.answer(summing)
    assert driven.live == 2

    await driven.decide(ended=[end(2)])
    driven.die("it died")

    assert driven.live == 0


async def test_a_sequence_that_is_ended_while_it_executes_is_not_brought_back_by_its_answer(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    await driven.decide(ended=[end(1)])

    driven.answer(summing)

    assert driven.value("a") == 3
    assert driven.live == 0


async def test_numbers_of_a_scheduler_that_failed_mean_nothing_to_its_successor(drive: Drive) -> None:
    driven = await drive(instances=2)
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    await driven.decide(Row(77, 1))
    driven.submit("b", 4)
    await driven.decide(Row(2, 1, start=True), slot=1)

    driven.answer(summing)
    driven.answer(summing)
    driven.submit("c", 5)
    await driven.decide(Row(3, 1), slot=1)
    driven.answer(summing)

    assert [driven.value(name) for name in "abc"] == [3, 4, 9]
