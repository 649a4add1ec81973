"""Models that send more than is taken: while they wait for room they lend what they hold."""

import asyncio
from pathlib import Path

import pytest

from naiad.backend import Answer, Batch
from naiad.calls import ModelCalls

from .models_that_call import Calling, double, reply, value, value_of
from .serving import request

ONE_UNIT = 'instance_group { kind: KIND_CPU rate_limiter { resources { name: "R" count: 1 } } }\n'
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
MANY = 500


def sends_many(batch: Batch, models: ModelCalls) -> Answer:
    sender = batch.sender(0)
    for number in range(int(value_of(batch))):
        sender.send(reply(number))
    sender.send(None, final=True)
    return [None]


def passes_on(batch: Batch, models: ModelCalls) -> Answer:
    """Reads what another streams, and sends it on."""
    sender = batch.sender(0)
    for response in models.stream(request("many", value_of(batch))):
        sender.send(reply(value(response)))
    sender.send(None, final=True)
    return [None]


@pytest.fixture
def calling(tmp_path: Path) -> Calling:
    calling = Calling(tmp_path)
    calling.add("many", sends_many, ONE_UNIT + DECOUPLED)
    calling.add("double", double, ONE_UNIT)
    calling.add("relay", passes_on, ONE_UNIT + DECOUPLED)
    return calling


@pytest.mark.parametrize("name", ["many", "relay"])
async def test_a_reader_may_ask_what_needs_the_same_between_two_responses(calling: Calling, name: str) -> None:
    async with calling.running(rate_limit="execution_count") as server:
        told = []
        async for response in server.stream(request(name, MANY)):
            if response.outputs:
                told.append(value(response))
            if len(told) in (1, 100, 400):
                assert value(await server.infer(request("double", 2))) == 4

    assert told == list(range(MANY))


async def test_a_reader_that_leaves_gives_everything_back(calling: Calling) -> None:
    async with calling.running(rate_limit="execution_count") as server:
        for _ in range(3):
            stream = server.stream(request("relay", MANY))
            await anext(stream)
            await stream.aclose()
        answers = await asyncio.gather(*(server.infer(request("double", number)) for number in range(5)))

    assert [value(answer) for answer in answers] == [0, 2, 4, 6, 8]
