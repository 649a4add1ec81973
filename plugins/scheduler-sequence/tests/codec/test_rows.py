"""Batches of sequences: the rows in their slots, and the controls of each."""

import numpy as np
import pytest

from naiad.errors import InternalError
from naiad.scheduler import Decision, Dispatch
from naiad_kit.sequences import Row
from naiad_testing.loops import turns

from .driven import SUM, Drive, config_of, seen, summing


async def test_every_row_of_a_batch_has_the_controls_of_its_request(drive: Drive) -> None:
    driven = await drive()
    for number in (1, 2, 3):
        driven.submit(f"r{number}", who=number * 10)

    await driven.decide(Row(1, 1, start=True), Row(2, 2), Row(3, 3, start=True, end=True))

    batch = driven.batch()
    assert (batch.sizes, batch.size) == ([1, 1, 1], 3)
    assert batch.input("START").tolist() == [[1], [0], [1]]
    assert batch.input("END").tolist() == [[False], [False], [True]]
    assert batch.input("READY").tolist() == [[1.0], [1.0], [1.0]]
    assert batch.input("ID").tolist() == [[10], [20], [30]]
    assert [batch.input(name).dtype.name for name in ("START", "READY", "END", "ID")] == [
        "int32",
        "float32",
        "bool",
        "uint64",
    ]
    assert [(each.sequence_start, each.sequence_end) for each in batch.requests] == [
        (True, False),
        (False, False),
        (True, True),
    ]


async def test_a_row_without_a_request_keeps_its_index_and_is_not_ready(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 5, who=1)
    driven.submit("b", 6, who=2)

    await driven.decide(Row(0), Row(1, 1, start=True), Row(0, sequence=9), Row(2, 2, start=True))

    batch = driven.batch()
    assert [request.id for request in batch.requests] == ["", "a", "", "b"]
    assert [request.correlation_id for request in batch.requests] == [0, 1, 0, 2]
    assert seen(batch, "READY") == [0.0, 1.0, 0.0, 1.0]
    assert seen(batch, "START") == [0, 1, 0, 1]
    assert seen(batch, "ID") == [0, 1, 0, 2]
    assert batch.input("X").shape == batch.input("SUM_IN").shape == (4, 1)


async def test_each_request_gets_its_own_row_of_the_answer_and_empty_rows_are_dropped(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 5, who=1)
    driven.submit("b", 6, who=2)
    await driven.decide(Row(0), Row(1, 1, start=True), Row(0), Row(2, 2, start=True))

    driven.answer(summing)

    assert (driven.value("a"), driven.value("b")) == (5, 6)
    assert driven.outstanding == 0


async def test_a_list_answers_every_row_and_what_it_says_of_empty_rows_is_dropped(drive: Drive) -> None:
    from naiad.backend import Reply

    driven = await drive()
    driven.submit("a", 5)
    await driven.decide(Row(0), Row(1, 1, start=True))

    driven.answer(lambda batch: [Reply({"Y": np.full((1, 1), 10 * at, np.int32)}) for at in range(2)])

    assert driven.value("a") == 10


async def test_a_model_without_batching_has_controls_without_a_batch_dimension(drive: Drive) -> None:
    driven = await drive(config_of(max_batch_size=0))
    driven.submit("a", 5)

    await driven.decide(Row(1, 1, start=True))

    batch = driven.batch()
    assert {name: batch.input(name).shape for name in ("START", "ID", "SUM_IN")} == {
        "START": (1,),
        "ID": (1,),
        "SUM_IN": (1,),
    }


@pytest.mark.parametrize(
    ("kind", "who", "message"),
    [
        ("TYPE_UINT64", 2**64 - 1, 2**64 - 1),
        ("TYPE_INT64", 2**64 - 1, -1),
        ("TYPE_UINT32", 2**32 + 5, 5),
        ("TYPE_INT32", 2**32 + 2**31, -(2**31)),
        ("TYPE_STRING", "größer", "größer".encode()),
        ("TYPE_STRING", 12, b"12"),
        ("TYPE_UINT64", "text", 0),
    ],
)
async def test_a_correlation_id_comes_as_the_type_that_the_model_takes(
    drive: Drive, kind: str, who: int | str, message: object
) -> None:
    control = f'control_input {{ name: "ID" control {{ kind: CONTROL_SEQUENCE_CORRID data_type: {kind} }} }}'
    driven = await drive(config_of(control))
    driven.submit("a", who=who)
    driven.submit("b", who=who)

    await driven.decide(Row(0), Row(1, 1, start=True))

    assert seen(driven.batch(), "ID") == [b"" if kind == "TYPE_STRING" else 0, message]


async def test_a_model_that_asks_for_no_controls_gets_none(drive: Drive) -> None:
    driven = await drive(config_of(SUM))
    driven.submit("a")

    await driven.decide(Row(1, 1, start=True))

    assert driven.batch().input_names == ("X", "SUM_IN")


async def test_states_are_always_wanted_and_other_outputs_when_somebody_asked(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", requested=("Y",))

    await driven.decide(Row(0), Row(1, 1, start=True))

    batch = driven.batch()
    assert [batch.wants(name) for name in ("SUM_OUT", "Y", "Z")] == [True, True, False]
    assert batch.alone(1).wants("SUM_OUT")


async def test_the_callers_own_request_is_left_as_it_was(drive: Drive) -> None:
    driven = await drive()
    request = driven.request("a", who=3)
    driven.server.submit(request, driven.outcomes["a"].append)

    await driven.decide(Row(1, 1, start=True))

    assert list(request.inputs) == ["X"]
    assert list(driven.batch().requests[0].inputs) == ["X", "START", "READY", "END", "SUM_IN", "ID"]


async def test_a_caller_that_leaves_is_reported_to_the_model_that_executes_its_row(drive: Drive) -> None:
    driven = await drive()
    call = driven.submit("a")
    await driven.decide(Row(0), Row(1, 1, start=True))

    call.cancel()

    assert [request.cancelled for request in driven.batch().requests] == [False, True]


@pytest.mark.parametrize(
    "dispatch",
    [
        Dispatch(0, (1, 2), "one row short", (Row(1, 1),)),
        Dispatch(0, (1, 2), "wrong order", (Row(2, 2), Row(1, 1))),
        Dispatch(0, (1,), "a ticket too many", (Row(1, 1), Row(2, 2))),
        Dispatch(0, (1, 2), "one sequence twice", (Row(1, 1), Row(2, 1))),
        Dispatch(0, (1,), "no number", (Row(1),)),
        Dispatch(0, (1,), "no request", (Row(0), Row(0))),
        Dispatch(0, (1,), "too many rows", (Row(1, 1), *[Row(0)] * 4)),
        Dispatch(3, (1,), "no such instance", (Row(1, 1),)),
        Dispatch(0, (77,), "made up", (Row(77, 1),)),
    ],
    ids=lambda dispatch: dispatch.reason,
)
async def test_rows_that_are_invalid_fail_what_waits_and_start_the_scheduler_anew(
    drive: Drive, dispatch: Dispatch
) -> None:
    driven = await drive()
    driven.submit("a", who=1)
    driven.submit("b", who=2)

    await driven.follow(Decision((dispatch,)))

    assert driven.sent == []
    assert all(isinstance(driven.error(name), InternalError) for name in "ab")
    assert len(driven.schedulers) == 2
    driven.submit("c", 4)
    await driven.decide(Row(3, 1, start=True))
    driven.answer(summing)
    assert driven.value("c") == 4


async def test_many_rows_at_several_indices_keep_apart(drive: Drive) -> None:
    driven = await drive(instances=2)
    for number in range(1, 5):
        driven.submit(f"r{number}", number, who=number)

    await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))
    await driven.decide(Row(3, 3, start=True), Row(4, 4, start=True), slot=1)

    assert [sent.worker.slot for sent in driven.sent] == [0, 1]
    driven.answer(summing, 1)
    driven.answer(summing)
    await turns()
    assert [driven.value(f"r{number}") for number in range(1, 5)] == [1, 2, 3, 4]
