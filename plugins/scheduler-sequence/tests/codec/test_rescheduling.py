"""Iterative models, which ask for a request once more."""

import gc
from collections.abc import Sequence
from time import monotonic
from typing import Any

import numpy as np

from naiad.backend import RESCHEDULE, Reschedule
from naiad.batch import Batch
from naiad.errors import ModelFailedError, UnavailableError
from naiad.scheduler import Drop, DropReason
from naiad_kit.sequences import Row
from naiad_testing.loops import turns

from .driven import SUM, Drive, config_of, end, failing, reply, seen, sent, summing

DECOUPLED = "model_transaction_policy { decoupled: true }"
ITERATIVE = "iterative_sequence: true " + SUM
ID = 'control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }'


def again(state: int) -> Reschedule:
    return Reschedule({"SUM_OUT": np.full((1, 1), state, np.int32)})


async def test_a_request_that_is_to_be_executed_again_comes_back_as_a_new_ticket_before_the_old_is_settled(
    drive: Drive,
) -> None:
    driven = await drive(config_of(ITERATIVE + ID))
    driven.submit("a", 3, who=0, sequence_start=True)
    await driven.decide(Row(1, 1, start=True))
    assert driven.batch().requests[0].correlation_id == 1
    assert seen(driven.batch(), "ID") == [1]

    driven.answer(lambda batch: [RESCHEDULE])

    second = driven.scheduler.tickets[1]
    assert (second.id, second.continues, second.sequence_start, second.sequence_end) == (2, 1, False, False)
    assert driven.scheduler.calls == [("arrive", 1), ("arrive", 2), ("settle", 1)]
    assert (driven.outstanding, driven.report.waiting) == (1, 1)
    await driven.decide(Row(2, 1))
    assert not driven.batch().requests[0].sequence_start
    driven.answer(summing)
    assert driven.value("a") == 3
    assert driven.ended == [(0, 1, "end")]
    assert driven.outstanding == 0


async def test_each_step_starts_from_the_state_that_the_last_one_left(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(lambda batch: [again(4)])
    await driven.decide(Row(2, 1))
    driven.answer(lambda batch: [RESCHEDULE])
    await driven.decide(Row(3, 1))

    driven.answer(summing)

    assert driven.value("a") == 4


async def test_only_some_of_a_batch_may_be_executed_again(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    for name in "abc":
        driven.submit(name, who=0)
    await driven.decide(Row(1, 1, start=True), Row(0), Row(2, 2, start=True), Row(3, 3, start=True))

    driven.answer(lambda batch: [again(1), RESCHEDULE, reply(2), ModelFailedError("no")])

    assert driven.value("b") == 2
    assert str(driven.error("c")) == "no"
    assert driven.outcomes["a"] == []
    assert driven.ended == [(0, 2, "end"), (0, 3, "end")]
    await driven.decide(Row(4, 1))
    driven.answer(lambda batch: [reply(9)])
    assert driven.value("a") == 9


async def test_what_was_sent_stays_sent_and_the_sender_goes_on_in_the_next_step(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE, DECOUPLED))
    driven.submit("a", who=0)

    def stepping(batch: Batch) -> Sequence[Any]:
        count = int(batch.input("SUM_IN")[0, 0]) + 1
        sender = batch.sender(0)
        sender.send(reply(count))
        if count < 3:
            return [again(count)]
        sender.send(None, final=True)
        return [None]

    for ticket in (1, 2, 3):
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(stepping)
        gc.collect()
        await turns()

    assert sent(driven, "a") == [1, 2, 3, "end"]
    assert driven.ended == [(0, 1, "end")]
    assert driven.outstanding == 0


async def test_a_sender_that_the_model_forgets_after_the_last_step_fails_the_request(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE, DECOUPLED))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    driven.batch().sender(0).send(reply(1))
    driven.answer(lambda batch: [RESCHEDULE])
    await driven.decide(Row(2, 1))

    driven.answer(lambda batch: [None])
    await turns()

    assert sent(driven, "a")[:1] == [1]
    assert "response sender" in str(driven.outcomes["a"][-1])
    assert driven.outstanding == 0


async def test_a_request_that_has_sent_all_and_is_to_be_executed_again_is_over(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE, DECOUPLED))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    driven.batch().sender(0).send(None, final=True)

    driven.answer(lambda batch: [RESCHEDULE])
    await turns()

    assert sent(driven, "a") == ["end"]
    assert driven.outstanding == 0


async def test_a_caller_that_leaves_between_two_steps_takes_the_request_back(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE, DECOUPLED))
    call = driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    sender = driven.batch().sender(0)
    driven.answer(lambda batch: [RESCHEDULE])

    call.cancel()
    del sender
    await turns()

    assert driven.scheduler.calls[-1] == ("settle", 2)
    assert driven.outstanding == 0
    assert driven.outcomes["a"] == []


async def test_a_caller_that_left_during_a_step_gets_no_further_one(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    call = driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    call.cancel()

    driven.answer(lambda batch: [RESCHEDULE])

    assert driven.scheduler.calls == [("arrive", 1), ("settle", 1)]
    assert driven.ended == [(0, 1, "cancelled")]
    assert driven.outstanding == 0


async def test_a_scheduler_may_refuse_a_further_step(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    driven.scheduler.refuse = Drop((2,), DropReason.LOST, "it must start anew")

    driven.answer(lambda batch: [RESCHEDULE])

    assert type(driven.error("a")) is UnavailableError
    assert driven.outstanding == 0
    assert driven.live == 0


async def test_a_further_step_cannot_go_to_a_scheduler_that_started_anew(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    await driven.decide(Row(99, 1))

    driven.answer(lambda batch: [RESCHEDULE])

    assert "the scheduler of model 'm' has failed" in str(driven.error("a"))
    assert driven.outstanding == 0


async def test_only_states_can_be_left_to_the_next_step(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))

    driven.answer(lambda batch: [Reschedule({"Y": np.zeros((1, 1), np.int32)})])

    assert "state 'Y' is not a valid state name" in str(driven.error("a"))
    assert driven.outstanding == 0


async def test_a_model_that_is_not_iterative_may_not_ask_for_a_request_once_more(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a")
    await driven.decide(Row(1, 1, start=True))

    driven.answer(lambda batch: [RESCHEDULE])

    assert "released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured" in str(
        driven.error("a")
    )


async def test_the_time_of_a_request_is_counted_from_its_first_arrival(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(lambda batch: [RESCHEDULE])

    await driven.decide(Row(2, 1))
    before_the_answer = monotonic()
    driven.answer(summing)
    first, second = driven.scheduler.tickets
    assert second.arrival > first.arrival
    statistics = driven.statistics
    assert (statistics.execution_count, statistics.success.count) == (2, 1)
    assert statistics.success.ns / 1e9 >= before_the_answer - first.arrival


async def test_an_iterative_request_that_fails_is_over(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))

    driven.answer(failing)

    assert driven.ended == [(0, 1, "end")]
    assert driven.live == 0


async def test_a_sequence_that_is_cancelled_while_it_executes_is_reported_once(drive: Drive) -> None:
    driven = await drive(config_of(ITERATIVE))
    driven.submit("a", who=0)
    await driven.decide(Row(1, 1, start=True))
    await driven.decide(ended=[end(1)])

    driven.answer(summing)

    assert driven.ended == [(0, 1, "idle")]
