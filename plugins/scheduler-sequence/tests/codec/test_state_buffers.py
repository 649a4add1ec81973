"""What states are kept in: arrays of their own, closed to writers or one for input and output."""

from collections.abc import Mapping

import numpy as np

from naiad.backend import Reply
from naiad.batch import Batch
from naiad_kit.sequences import Row

from .driven import SUM, Drive, config_of, summing

VARIABLE = 'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ -1 ] }'
SHOWN = 'output { name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ] }'


async def test_a_state_does_not_keep_the_outputs_of_a_large_batch_alive(drive: Drive) -> None:
    driven = await drive(config_of(VARIABLE))
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


async def test_a_text_in_a_state_does_not_keep_those_of_other_sequences_alive(drive: Drive) -> None:
    texts = 'state { input_name: "IN" output_name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }'
    driven = await drive(config_of(texts))
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


async def test_a_model_may_not_write_to_a_state_that_the_next_request_may_need_again(drive: Drive) -> None:
    driven = await drive()
    for ticket in (1, 2):
        driven.submit(str(ticket))
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        assert not driven.batch().input("SUM_IN").flags.writeable
        driven.answer(summing)


async def test_with_one_buffer_for_input_and_output_a_sequence_keeps_one_array(drive: Drive) -> None:
    in_place = VARIABLE.replace("dims: [ -1 ]", "dims: [ -1 ] use_same_buffer_for_input_output: true")
    driven = await drive(config_of(in_place))
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


async def test_a_list_may_say_what_it_likes_of_the_one_buffer_of_an_empty_row(drive: Drive) -> None:
    in_place = SUM.replace("dims: [ 1 ]", "dims: [ 1 ] use_same_buffer_for_input_output: true")
    driven = await drive(config_of(in_place))
    one = np.ones((1, 1), np.int32)
    driven.submit("a")
    await driven.decide(Row(0), Row(1, 1, start=True))

    driven.answer(lambda batch: [Reply({"Y": at * one, "SUM_OUT": at * one}) for at in (8, 9)])

    assert driven.value("a") == 9


async def test_a_buffer_that_clients_see_is_copied_for_them(drive: Drive) -> None:
    in_place = SUM.replace("dims: [ 1 ]", "dims: [ 1 ] use_same_buffer_for_input_output: true")
    driven = await drive(config_of(in_place, SHOWN))

    def writing(batch: Batch) -> Mapping[str, np.ndarray]:
        buffer = batch.input("SUM_IN")
        buffer[...] += batch.input("X")
        return {"Y": buffer.copy(), "SUM_OUT": buffer}

    for ticket in (1, 2):
        driven.submit(str(ticket), 5)
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(writing)

    assert [driven.response(name).outputs["SUM_OUT"].array.tolist() for name in "12"] == [[[5]], [[10]]]


async def test_states_of_strings_go_on_too(drive: Drive) -> None:
    texts = 'state { input_name: "IN" output_name: "OUT" data_type: TYPE_STRING dims: [ 2 ] }'
    driven = await drive(config_of(texts))
    results = []

    def writing(batch: Batch) -> Mapping[str, np.ndarray]:
        results.append(batch.input("IN").tolist())
        return {"Y": batch.input("X"), "OUT": np.array([["é", "x"]])}

    for ticket in (1, 2):
        driven.submit(str(ticket))
        await driven.decide(Row(ticket, 1, start=ticket == 1))
        driven.answer(writing)

    assert results == [[[b"", b""]], [["é".encode(), b"x"]]]
