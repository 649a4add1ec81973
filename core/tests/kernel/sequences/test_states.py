"""Implicit state: what a request leaves is what the next one of its sequence starts from."""

from collections.abc import Mapping

import numpy as np
import pytest

from naiad.backend import Reply
from naiad.batch import Batch
from naiad.errors import ModelFailedError
from naiad.scheduler import Row
from naiad.testing.tracing import FakeTrace

from .driven import SUM, DrivenSequences, config_of, end, failing, summing

VARIABLE = 'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ -1 ] }'
SHOWN = 'output { name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ] }'


def appending(batch: Batch) -> Mapping[str, np.ndarray]:
    """The state grows by X; Y is its sum."""
    grown = np.concatenate([batch.input("SUM_IN"), batch.input("X")], axis=1)
    return {"Y": grown.sum(axis=1, keepdims=True, dtype=np.int32), "SUM_OUT": grown}


async def test_a_sequence_goes_on_from_what_its_last_request_left() -> None:
    driven = DrivenSequences()
    values = {"a": 3, "b": 4, "c": 5}
    for ticket, (name, value) in enumerate(values.items(), 1):
        driven.submit(name, value)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(summing)

    assert [driven.value(name) for name in values] == [3, 7, 12]


async def test_sequences_of_one_batch_have_states_of_their_own_wherever_they_stand() -> None:
    driven = DrivenSequences()
    driven.submit("a", 1, who=1)
    driven.submit("b", 10, who=2)
    await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
    driven.answer(summing)
    driven.submit("c", 2, who=1)
    driven.submit("d", 20, who=2)

    await driven.decide(Row(4, 2), Row(0), Row(3, 1))
    driven.answer(summing)

    assert (driven.value("c"), driven.value("d")) == (3, 30)


async def test_a_start_begins_from_the_initial_state_again() -> None:
    driven = DrivenSequences()
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    driven.submit("b", 4, sequence_start=True)

    await driven.decide(Row(2, 1, start=True))
    driven.answer(summing)

    assert driven.value("b") == 4


async def test_a_request_that_fails_leaves_the_state_as_it_was() -> None:
    driven = DrivenSequences()
    for ticket, model in enumerate([summing, failing, summing], 1):
        driven.submit(str(ticket), 10**ticket)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(model)

    assert isinstance(driven.error("2"), ModelFailedError)
    assert driven.value("3") == 1010


async def test_a_request_whose_response_is_refused_leaves_the_state_as_it_was() -> None:
    driven = DrivenSequences()
    driven.submit("a", 3, requested=("Y",))
    await driven.decide(Row(1, 1, start=True))
    driven.answer(lambda batch: {"SUM_OUT": batch.input("X")})
    driven.submit("b", 4)

    await driven.decide(Row(2, 1))
    driven.answer(summing)

    assert "did not produce the requested output 'Y'" in str(driven.error("a"))
    assert driven.value("b") == 4


async def test_in_a_list_each_reply_has_its_own_state_and_an_error_keeps_the_old_one() -> None:
    driven = DrivenSequences()
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


async def test_a_model_that_gives_no_state_leaves_it_as_it_was() -> None:
    driven = DrivenSequences()
    for ticket, model in enumerate([summing, lambda batch: {"Y": batch.input("X")}, summing], 1):
        driven.submit(str(ticket), 10**ticket)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(model)

    assert driven.value("3") == 1010


async def test_a_state_is_not_told_to_clients_unless_it_is_an_output_too() -> None:
    hidden, shown = DrivenSequences(), DrivenSequences(config_of(SUM, SHOWN))

    for driven in (hidden, shown):
        driven.submit("a", 3)
        driven.submit("b", 3, who=8, requested=("Y",))
        await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
        driven.answer(summing)

    assert list(hidden.response("a").outputs) == ["Y"]
    assert shown.response("a").outputs["SUM_OUT"].array.tolist() == [[3]]
    assert list(shown.response("b").outputs) == ["Y"]


@pytest.mark.parametrize("shown", ["", SHOWN])
async def test_a_model_whose_outputs_are_not_declared_keeps_its_states_all_the_same(shown: str) -> None:
    driven = DrivenSequences(config_of(SUM, shown), strict=False)
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(summing)
    driven.submit("b", 4)

    await driven.decide(Row(2, 1))
    driven.answer(summing)

    assert driven.value("b") == 7


async def test_a_state_does_not_keep_the_outputs_of_a_large_batch_alive() -> None:
    driven = DrivenSequences(config_of(VARIABLE))
    for who in range(1, 5):
        driven.submit(str(who), who=who)
    await driven.decide(*[Row(who, who, start=True) for who in range(1, 5)])
    driven.answer(lambda batch: {"Y": batch.input("X"), "SUM_OUT": np.zeros((4, 1000), np.int32)})
    driven.submit("next", who=1)

    await driven.decide(Row(5, 1))

    state = driven.batch().input("SUM_IN")
    owner = state if state.base is None else state.base
    assert isinstance(owner, np.ndarray)
    assert owner.size == 1000


async def test_a_text_in_a_state_does_not_keep_those_of_other_sequences_alive() -> None:
    texts = 'state { input_name: "IN" output_name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }'
    driven = DrivenSequences(config_of(texts))
    for who in (1, 2):
        driven.submit(str(who), who=who)
    await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
    driven.answer(lambda batch: {"Y": batch.input("X"), "OUT": np.array([[b"a"], [b"b"]], dtype=object)})
    driven.submit("next", who=1)

    await driven.decide(Row(3, 1))

    state = driven.batch().input("IN")
    owner = state if state.base is None else state.base
    assert isinstance(owner, np.ndarray)
    assert owner.tolist() == [[b"a"]]


async def test_a_model_may_not_write_to_a_state_that_the_next_request_may_need_again() -> None:
    driven = DrivenSequences()
    for ticket in (1, 2):
        driven.submit(str(ticket))
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        assert not driven.batch().input("SUM_IN").flags.writeable
        driven.answer(summing)


async def test_with_one_buffer_for_input_and_output_a_sequence_keeps_one_array() -> None:
    in_place = VARIABLE.replace("dims: [ -1 ]", "dims: [ -1 ] use_same_buffer_for_input_output: true")
    driven = DrivenSequences(config_of(in_place))
    arrays = []

    def writing(batch: Batch) -> Mapping[str, np.ndarray]:
        arrays.append(batch.input("SUM_IN"))
        arrays[-1][...] += batch.input("X")
        return {"Y": arrays[-1].copy(), "SUM_OUT": arrays[-1]}

    def giving_a_new_one(batch: Batch) -> Mapping[str, np.ndarray]:
        arrays.append(batch.input("SUM_IN"))
        return summing(batch)

    for ticket, model in enumerate([writing, giving_a_new_one, writing], 1):
        driven.submit(str(ticket), 1)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(model)

    assert [driven.value(str(ticket)) for ticket in (1, 2, 3)] == [1, 2, 3]
    assert arrays[0] is arrays[1] is arrays[2]


async def test_a_list_may_say_what_it_likes_of_the_one_buffer_of_an_empty_row() -> None:
    in_place = SUM.replace("dims: [ 1 ]", "dims: [ 1 ] use_same_buffer_for_input_output: true")
    driven = DrivenSequences(config_of(in_place))
    one = np.ones((1, 1), np.int32)
    driven.submit("a")
    await driven.decide(Row(0), Row(1, 1, start=True))

    driven.answer(lambda batch: [Reply({"Y": at * one, "SUM_OUT": at * one}) for at in (8, 9)])

    assert driven.value("a") == 9


async def test_a_buffer_that_clients_see_is_copied_for_them() -> None:
    in_place = SUM.replace("dims: [ 1 ]", "dims: [ 1 ] use_same_buffer_for_input_output: true")
    driven = DrivenSequences(config_of(in_place, SHOWN))

    def writing(batch: Batch) -> Mapping[str, np.ndarray]:
        buffer = batch.input("SUM_IN")
        buffer[...] += batch.input("X")
        return {"Y": buffer.copy(), "SUM_OUT": buffer}

    for ticket in (1, 2):
        driven.submit(str(ticket), 5)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(writing)

    assert [driven.response(name).outputs["SUM_OUT"].array.tolist() for name in "12"] == [[[5]], [[10]]]


async def test_a_state_may_grow_and_starts_with_one_where_any_size_is_allowed() -> None:
    driven = DrivenSequences(config_of(VARIABLE))
    shapes = []
    for ticket in (1, 2, 3):
        driven.submit(str(ticket), ticket)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        shapes.append(driven.batch().input("SUM_IN").shape)
        driven.answer(appending)

    assert shapes == [(1, 1), (1, 2), (1, 3)]
    assert driven.value("3") == 6


@pytest.mark.parametrize("strategy", ["", "oldest { }"])
async def test_rows_whose_states_differ_in_shape_are_executed_one_after_the_other(strategy: str) -> None:
    driven = DrivenSequences(config_of(VARIABLE + strategy))
    driven.submit("a1", 1, who=1)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(appending)
    for ticket, (name, who) in enumerate((("b", 2), ("a2", 1), ("c", 3)), 2):
        driven.submit(name, ticket, who=who)

    await driven.decide(Row(2, 2, start=True), Row(3, 1), Row(4, 3, start=True))

    assert len(driven.sent) == 1
    first = [request.id for request in driven.batch().requests]
    driven.answer(appending)
    assert driven.scheduler.told[-1] == ("settle", 2, 4)
    second = [request.id for request in driven.batch().requests]
    driven.answer(appending)
    assert (first, second) == ((["b", "c"], ["a2"]) if strategy else (["b", "", "c"], ["", "a2"]))
    assert [driven.value(name) for name in ("b", "a2", "c")] == [2, 4, 4]
    assert driven.sent == []
    assert driven.queue.outstanding == 0


async def test_traces_go_with_the_batches_that_follow() -> None:
    driven = DrivenSequences(config_of(VARIABLE))
    driven.queue.traces = True
    first, second = FakeTrace(), FakeTrace()
    driven.submit("a1", 1, who=1)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(appending)
    driven.submit("a2", 1, who=1, trace=first)
    driven.submit("b", 1, who=2, trace=second)

    await driven.decide(Row(2, 1), Row(3, 2, start=True))

    together = driven.sent[0].traces, driven.sent[0].reason
    driven.answer(appending)
    assert together == ([first], "told to")
    assert (driven.sent[0].traces, driven.sent[0].reason) == ([second], "told to")


async def test_what_was_to_follow_a_batch_that_is_lost_is_lost_with_it() -> None:
    driven = DrivenSequences(config_of(VARIABLE))
    driven.submit("a1", 1, who=1)
    await driven.decide(Row(1, 1, start=True))
    driven.answer(appending)
    driven.submit("a2", 1, who=1)
    driven.submit("b", 1, who=2)
    await driven.decide(Row(2, 1), Row(3, 2, start=True))

    driven.die(ModelFailedError("it died"))

    assert {str(driven.error(name)) for name in ("a2", "b")} == {"it died"}
    assert driven.queue.outstanding == 0
    assert driven.queue.live == 0


@pytest.mark.parametrize(
    ("output", "phrase"),
    [
        (np.zeros((1, 2), np.int32), "has shape [1, 2]; its configuration and a batch of 1 ask for [1, 1]"),
        (np.zeros((2, 1), np.int32), "has shape [2, 1]"),
        (np.zeros((1, 1), np.float32), "is FP32; its configuration declares INT32"),
        (np.zeros((1, 1), np.complex64), "cannot be read as an array"),
    ],
)
async def test_a_state_that_is_not_what_was_declared_fails_its_request(output: np.ndarray, phrase: str) -> None:
    driven = DrivenSequences()
    driven.submit("a")
    await driven.decide(Row(1, 1, start=True))

    driven.answer(lambda batch: {"Y": batch.input("X"), "SUM_OUT": output})

    assert "model 'm', state 'SUM_OUT'" in str(driven.error("a"))
    assert phrase in str(driven.error("a"))


async def test_states_of_strings_go_on_too() -> None:
    texts = 'state { input_name: "IN" output_name: "OUT" data_type: TYPE_STRING dims: [ 2 ] }'
    driven = DrivenSequences(config_of(texts))
    found = []

    def writing(batch: Batch) -> Mapping[str, np.ndarray]:
        found.append(batch.input("IN").tolist())
        return {"Y": batch.input("X"), "OUT": np.array([["é", "x"]])}

    for ticket in (1, 2):
        driven.submit(str(ticket))
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(writing)

    assert found == [[[b"", b""]], [["é".encode(), b"x"]]]


async def test_nothing_is_kept_of_a_sequence_that_is_over() -> None:
    driven = DrivenSequences()
    for who in (1, 2, 3):
        driven.submit(str(who), who, who=who)
    await driven.decide(Row(1, 1, start=True, end=True), Row(2, 2, start=True), Row(3, 3, start=True))
    driven.answer(summing)
    assert driven.queue.live == 2

    await driven.decide(ended=[end(2)])
    driven.queue.lose(0)

    assert driven.queue.live == 0


async def test_a_sequence_that_is_ended_while_it_executes_is_not_brought_back_by_its_answer() -> None:
    driven = DrivenSequences()
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    await driven.decide(ended=[end(1)])

    driven.answer(summing)

    assert driven.value("a") == 3
    assert driven.queue.live == 0


async def test_numbers_of_a_scheduler_that_failed_mean_nothing_to_its_successor() -> None:
    driven = DrivenSequences()
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    await driven.decide(Row(77, 1))
    driven.queue.free(0)
    driven.submit("b", 4)
    await driven.decide(Row(2, 1, start=True))

    driven.answer(summing)
    driven.answer(summing)
    driven.submit("c", 5)
    await driven.decide(Row(3, 1))
    driven.answer(summing)

    assert [driven.value(name) for name in "abc"] == [3, 4, 9]
