"""Models that send their responses one by one: how many, in which order, and how they are counted."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from naiad.backend import Answer, Batch, Sender
from naiad.errors import InternalError, ModelFailedError, NaiadError, UnsupportedError
from naiad_testing.in_loop import FLOATS, request, rows, running, write_model
from naiad_testing.loops import until
from naiad_testing.scheduling import Ordered, Scheduling
from naiad_testing.steered import Steered

from .streaming import DECOUPLED, END, Caller, answers_of, batched, reply, sending, serving, values_of


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([(reply(1), False), (reply(2), False), (reply(3), True)], [[1.0], [2.0], ([3.0],)]),
        ([(reply(1), False), (None, True)], [[1.0], (END,)]),
        ([(None, True)], [(END,)]),
        (
            [(reply(1), False), (UnsupportedError("not this one"), False), (reply(2), False), (None, True)],
            [[1.0], "UnsupportedError: not this one", [2.0], (END,)],
        ),
        ([(reply(1), False), (InternalError("broke"), True)], [[1.0], ("InternalError: broke",)]),
    ],
)
async def test_a_decoupled_model_sends_any_number_of_responses(
    tmp_path: Path, sent: list[tuple[Any, bool]], expected: list[Any]
) -> None:
    async with serving(tmp_path, sending(*sent)) as server:
        assert await answers_of(server) == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([(reply(1), True)], [([1.0],)]),
        ([(reply(1), False), (None, True)], [([1.0],)]),
        ([(InternalError("broke"), True)], [("InternalError: broke",)]),
        ([(InternalError("broke"), False), (None, True)], [("InternalError: broke",)]),
    ],
)
async def test_a_model_that_is_not_decoupled_may_send_its_one_response(
    tmp_path: Path, sent: list[tuple[Any, bool]], expected: list[Any]
) -> None:
    async with serving(tmp_path, sending(*sent), FLOATS) as server:
        assert await answers_of(server) == expected


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ([(reply(1), False), (reply(2), True)], "cannot send more than one response"),
        ([(None, True)], "cannot send complete final before sending a response"),
    ],
)
async def test_a_model_that_is_not_decoupled_sends_exactly_one(
    tmp_path: Path, sent: list[tuple[Any, bool]], reason: str
) -> None:
    async with serving(tmp_path, sending(*sent), FLOATS) as server:
        with pytest.raises(ModelFailedError, match=reason):
            await server.infer(request("m", 1.0))


async def test_a_sender_that_has_sent_all_takes_no_more(tmp_path: Path) -> None:
    errors: list[NaiadError] = []

    def execute(batch: Batch) -> Answer:
        batch.sender(0).send(reply(1), final=True)
        with pytest.raises(InternalError, match="has been closed") as caught:
            batch.sender(0).send(reply(2))
        errors.append(caught.value)
        return [None]

    async with serving(tmp_path, execute) as server:
        assert await answers_of(server) == [([1.0],)]

    assert errors


async def test_a_caller_that_takes_one_response_is_refused_by_a_decoupled_model(tmp_path: Path) -> None:
    async with serving(tmp_path, sending((None, True))) as server:
        with pytest.raises(UnsupportedError, match="doesn't support models with decoupled transaction policy"):
            await server.infer(request("m", 1.0))


async def test_a_decoupled_model_may_answer_as_any_other(tmp_path: Path) -> None:
    async with serving(tmp_path, lambda batch: {"OUTPUT": batch.input("INPUT")}) as server:
        assert await answers_of(server) == [([1.0],)]


async def test_an_instance_takes_its_next_batch_while_an_earlier_request_still_streams(tmp_path: Path) -> None:
    senders: list[Sender] = []

    def execute(batch: Batch) -> Answer:
        senders.append(batch.sender(0))
        return [None]

    async with serving(tmp_path, execute) as server:
        first, second = Caller(), Caller()
        server.submit(request("m", 1.0), first, streams=True)
        server.submit(request("m", 1.0), second, streams=True)
        await until(lambda: len(senders) == 2)

        await asyncio.to_thread(senders[1].send, reply(2), True)
        await asyncio.to_thread(senders[0].send, reply(1), True)
        await first.done.wait()

        assert (values_of(first.outcomes), values_of(second.outcomes)) == ([([1.0],)], [([2.0],)])
        senders.clear()


async def test_an_answer_on_both_ways_is_an_error(tmp_path: Path) -> None:
    def execute(batch: Batch) -> Answer:
        batch.sender(0).send(reply(1))
        return [reply(2)]

    async with serving(tmp_path, execute) as server:
        assert (await answers_of(server))[-1][0].startswith("ModelFailedError: model 'm' answered a request twice")


async def test_responses_of_ordered_requests_wait_for_those_before(tmp_path: Path) -> None:
    senders: dict[str, Sender] = {}

    def execute(batch: Batch) -> Answer:
        senders[batch.requests[0].id] = batch.sender(0)
        return [None]

    write_model(tmp_path, "m", DECOUPLED + "max_batch_size: 4 dynamic_batching {}\n")
    async with running(tmp_path, Steered(execute=execute), Scheduling(Ordered)) as server:
        first, second = Caller(), Caller()
        server.submit(rows("m", 1.0, id="1"), first, streams=True)
        server.submit(rows("m", 1.0, id="2"), second, streams=True)
        await until(lambda: len(senders) == 2)

        await asyncio.to_thread(senders["2"].post, batched(2))
        await asyncio.to_thread(senders["1"].post, batched(1))
        await until(lambda: first.outcomes)
        early = values_of(second.outcomes)
        await asyncio.to_thread(senders["1"].post, None, True)
        await until(lambda: second.outcomes)
        await asyncio.to_thread(senders["2"].post, None, True)
        await second.done.wait()
        senders.clear()

    assert early == []
    assert (values_of(first.outcomes), values_of(second.outcomes)) == ([[[1.0]], (END,)], [[[2.0]], (END,)])


async def test_responses_are_counted_by_their_index(tmp_path: Path) -> None:
    sent = [(reply(1), False), (InternalError("broke"), False), (None, True)]
    async with serving(tmp_path, sending(*sent)) as server:
        await answers_of(server)
        await answers_of(server)
        await until(lambda: server.statistics("m")[0].execution_count == 2)  # counted after the last response
        (counted,) = server.statistics("m")

    indices = {
        index: (each.success.count, each.fail.count, each.empty_response.count)
        for index, each in counted.response_stats.items()
    }
    assert indices == {"0": (2, 0, 0), "1": (0, 2, 0), "2": (0, 0, 2)}
    assert (counted.success.count, counted.inference_count) == (2, 2)


def test_a_batch_without_a_server_has_no_receiver() -> None:
    with pytest.raises(InternalError, match="not made by a server"):
        Batch([request("m", 1.0)], [1]).sender(0)
