"""Models that send more than is taken: while they wait for room they lend what they hold."""

import asyncio

import pytest

from naiad.backend import Answer, Batch, Reply
from naiad_kit.calls import ModelCalls

from .models import Models, double, group, output, request, sends_many, units, value, value_of, with_outputs

ONE_UNIT = group(units(1))
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
MANY = 500


def passes_on(batch: Batch, models: ModelCalls) -> Answer:
    """Reads what another streams, and sends it on."""
    sender = batch.sender(0)
    for response in with_outputs(models.stream(request("many", value_of(batch)))):
        sender.send(Reply(output(value(response))))
    sender.send(None, final=True)
    return [None]


@pytest.fixture(autouse=True)
def streaming(models: Models) -> None:
    models.add("many", sends_many, ONE_UNIT + DECOUPLED)
    models.add("double", double, ONE_UNIT)
    models.add("relay", passes_on, ONE_UNIT + DECOUPLED)


@pytest.mark.parametrize("name", ["many", "relay"])
async def test_a_reader_may_ask_what_needs_the_same_between_two_responses(models: Models, name: str) -> None:
    async with models.running(rate_limit="execution_count") as server:
        numbers = []
        async for response in server.stream(request(name, MANY)):
            if response.outputs:
                numbers.append(value(response))
            if len(numbers) in (1, 100, 400):
                assert value(await server.infer(request("double", 2))) == 4

    assert numbers == list(range(MANY))


async def test_a_reader_that_leaves_gives_everything_back(models: Models) -> None:
    async with models.running(rate_limit="execution_count") as server:
        for _ in range(3):
            stream = server.stream(request("relay", MANY))
            await anext(stream)
            await stream.aclose()
        answers = await asyncio.gather(*(server.infer(request("double", number)) for number in range(5)))

    assert [value(answer) for answer in answers] == [0, 2, 4, 6, 8]
