"""States whose shape changes: they grow, and rows that differ are executed one after the other."""

from collections.abc import Mapping

import numpy as np
import pytest

from naiad.batch import Batch
from naiad.errors import WorkerDiedError
from naiad.types import JoinedBatch
from naiad_kit.sequences import Row
from naiad_testing.loops import turns
from naiad_testing.tracing import FakeTrace

from .driven import Drive, DrivenSequences, config_of, reply, sent

VARIABLE = 'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ -1 ] }'
SHOWN = 'output { name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ] }'


def appending(batch: Batch) -> Mapping[str, np.ndarray]:
    """The state grows by X; Y is its sum."""
    grown = np.concatenate([batch.input("SUM_IN"), batch.input("X")], axis=1)
    return {"Y": grown.sum(axis=1, keepdims=True, dtype=np.int32), "SUM_OUT": grown}


class BatchTrace(FakeTrace):
    """A trace that notes the batches of its request."""

    def __init__(self) -> None:
        super().__init__()
        self.joined: list[JoinedBatch] = []

    def executing(self, batch: JoinedBatch, ns: int) -> None:
        self.joined.append(batch)


async def send_two_shapes(driven: DrivenSequences) -> None:
    """Send a batch of b, a2 and c, which takes two steps: the state of a2 alone has grown."""
    driven.submit("a1", 1, who=1)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(appending)
    for ticket, (name, who) in enumerate((("b", 2), ("a2", 1), ("c", 3)), 2):
        driven.submit(name, ticket, who=who)
    await driven.decide(Row(2, 2, start=True), Row(3, 1), Row(4, 3, start=True))


async def test_a_state_may_grow_and_starts_with_one_where_any_size_is_allowed(drive: Drive) -> None:
    driven = await drive(config_of(VARIABLE))
    shapes = []
    for ticket in (1, 2, 3):
        driven.submit(str(ticket), ticket)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        shapes.append(driven.batch().input("SUM_IN").shape)
        driven.answer(appending)

    assert shapes == [(1, 1), (1, 2), (1, 3)]
    assert driven.value("3") == 6


@pytest.mark.parametrize("strategy", ["", "oldest { }"])
async def test_rows_whose_states_differ_in_shape_are_executed_one_after_the_other(drive: Drive, strategy: str) -> None:
    driven = await drive(config_of(VARIABLE + strategy))

    await send_two_shapes(driven)

    assert len(driven.sent) == 1
    first = [request.id for request in driven.batch().requests]
    driven.answer(appending)
    assert driven.scheduler.calls[-1] == ("settle", 2, 4)
    second = [request.id for request in driven.batch().requests]
    driven.answer(appending)
    assert (first, second) == ((["b", "c"], ["a2"]) if strategy else (["b", "", "c"], ["", "a2"]))
    assert [driven.value(name) for name in ("b", "a2", "c")] == [2, 4, 4]
    assert driven.sent == []
    assert driven.outstanding == 0


async def test_a_stream_does_not_wait_for_an_earlier_request_that_follows_at_its_slot(drive: Drive) -> None:
    decoupled = "model_transaction_policy { decoupled: true }"
    driven = await drive(config_of(VARIABLE + "oldest { preserve_ordering: true }", decoupled))
    await send_two_shapes(driven)
    first, third = (driven.batch().sender(index) for index in (0, 1))
    first.send(reply(2), final=True)

    third.post(reply(4))
    await turns()
    room = third.post(reply(5))
    third.post(reply(6), final=True)
    driven.answer(lambda batch: [None, None])
    before = sent(driven, "c")
    driven.answer(appending)
    await turns()
    assert room is None
    assert (before, sent(driven, "c")) == ([], [4, 5, 6])


async def test_traces_go_with_the_batches_that_follow(drive: Drive) -> None:
    driven = await drive(config_of(VARIABLE))
    first, second = BatchTrace(), BatchTrace()
    driven.submit("a1", 1, who=1)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(appending)
    driven.submit("a2", 1, who=1, trace=first)
    driven.submit("b", 1, who=2, trace=second)

    await driven.decide(Row(2, 1), Row(3, 2, start=True))

    driven.answer(appending)
    after_one = list(first.joined), list(second.joined)
    driven.answer(appending)
    first_batch = JoinedBatch("m_0_0", 1, 1, "requested")
    behind_a_vacant_row = JoinedBatch("m_0_0", 2, 1, "requested")
    assert after_one == ([first_batch], [])
    assert (first.joined, second.joined) == ([first_batch], [behind_a_vacant_row])


async def test_what_was_to_follow_a_batch_that_is_lost_is_lost_with_it(drive: Drive) -> None:
    driven = await drive(config_of(VARIABLE))
    driven.submit("a1", 1, who=1)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(appending)
    driven.submit("a2", 1, who=1)
    driven.submit("b", 1, who=2)
    await driven.decide(Row(2, 1), Row(3, 2, start=True))

    driven.die("it died")

    errors = [driven.error(name) for name in ("a2", "b")]
    assert all(isinstance(error, WorkerDiedError) and "it died" in str(error) for error in errors)
    assert driven.outstanding == 0
    assert driven.live == 0


@pytest.mark.parametrize(
    ("output", "phrase"),
    [
        (np.zeros((1, 2), np.int32), "has shape [1, 2]; its configuration and a batch of 1 ask for [1, 1]"),
        (np.zeros((2, 1), np.int32), "has shape [2, 1]"),
        (np.zeros((1, 1), np.float32), "is FP32; its configuration declares INT32"),
        (np.zeros((1, 1), np.complex64), "cannot be read"),
    ],
)
async def test_a_state_that_is_not_what_was_declared_fails_its_request(
    drive: Drive, output: np.ndarray, phrase: str
) -> None:
    driven = await drive()
    driven.submit("a")
    await driven.decide(Row(1, 1, start=True))

    driven.answer(lambda batch: {"Y": batch.input("X"), "SUM_OUT": output})

    assert "model 'm', state 'SUM_OUT'" in str(driven.error("a"))
    assert phrase in str(driven.error("a"))
