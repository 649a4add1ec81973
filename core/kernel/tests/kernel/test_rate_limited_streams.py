"""Models that read what others stream, and share a resource with them."""

from pathlib import Path

import pytest

from naiad.backend import Answer, Batch
from naiad.calls import ModelCalls

from .models_that_call import Behaviour, Calling, double, given, reply, value, value_of
from .serving import request

ONE_UNIT = 'instance_group { kind: KIND_CPU rate_limiter { resources { name: "R" count: 1 } } }\n'
DECOUPLED = "model_transaction_policy { decoupled: true }\n"


def sends_many(batch: Batch, models: ModelCalls) -> Answer:
    sender = batch.sender(0)
    for number in range(int(value_of(batch))):
        sender.send(reply(number))
    sender.send(None, final=True)
    return [None]


def only_reads(batch: Batch, models: ModelCalls) -> Answer:
    return given(sum(1 for _ in models.stream(request("many", 500))))


def asks_at_once(batch: Batch, models: ModelCalls) -> Answer:
    """Most of the stream is yet to be read, and nobody reads it before the other model has answered."""
    responses = models.stream(request("many", 500))
    next(responses)
    models.infer(request("double", 1))
    return given(1 + sum(1 for _ in responses))


def begins_before_it_reads(batch: Batch, models: ModelCalls) -> Answer:
    responses = models.stream(request("many", 500))
    begun = models.begin(request("double", 1))
    begun.result()
    return given(sum(1 for _ in responses))


def asks_in_between(batch: Batch, models: ModelCalls) -> Answer:
    """The stream occupies the resource until it has been read; the other model needs it, too."""
    read = 0
    for response in models.stream(request("many", 500)):
        if value(response) == 499:
            models.infer(request("double", 1))
        read += 1
    return given(read)


def breaks_off(batch: Batch, models: ModelCalls) -> Answer:
    responses = models.stream(request("many", 500))
    next(responses)
    responses.close()
    return given(499 + value(models.infer(request("double", 0.5))))


@pytest.mark.parametrize("behaviour", [only_reads, asks_at_once, begins_before_it_reads, asks_in_between, breaks_off])
async def test_a_reader_lends_what_the_streaming_model_needs(tmp_path: Path, behaviour: Behaviour) -> None:
    calling = Calling(tmp_path)
    calling.add("many", sends_many, ONE_UNIT + DECOUPLED)
    calling.add("double", double, ONE_UNIT)
    calling.add("outer", behaviour, ONE_UNIT)

    async with calling.running(rate_limit="execution_count") as server:
        answers = [value(await server.infer(request("outer", 1))) for _ in range(3)]

    assert answers == [500] * 3
