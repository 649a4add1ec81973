"""Models that read what others stream, and share a resource with them."""

import pytest

from naiad.backend import Answer, Batch
from naiad_kit.calls import ModelCalls

from .models import Behaviour, Models, double, group, output, request, sends_many, units, value, with_outputs

ONE_UNIT = group(units(1))
DECOUPLED = "model_transaction_policy { decoupled: true }\n"


def only_reads(batch: Batch, models: ModelCalls) -> Answer:
    return output(sum(1 for _ in with_outputs(models.stream(request("many", 500)))))


def asks_at_once(batch: Batch, models: ModelCalls) -> Answer:
    """Most of the stream is yet to be read, and its caller does not read it before the other model has answered."""
    responses = models.stream(request("many", 500))
    next(responses)
    models.infer(request("double", 1))
    return output(1 + sum(1 for _ in with_outputs(responses)))


def begins_before_it_reads(batch: Batch, models: ModelCalls) -> Answer:
    responses = models.stream(request("many", 500))
    begun = models.begin(request("double", 1))
    begun.result()
    return output(sum(1 for _ in with_outputs(responses)))


def asks_in_between(batch: Batch, models: ModelCalls) -> Answer:
    """The stream occupies the resource until it has been read; the other model needs it, too."""
    read = 0
    for response in with_outputs(models.stream(request("many", 500))):
        if value(response) == 499:
            models.infer(request("double", 1))
        read += 1
    return output(read)


def breaks_off(batch: Batch, models: ModelCalls) -> Answer:
    responses = models.stream(request("many", 500))
    next(responses)
    responses.close()
    return output(499 + value(models.infer(request("double", 0.5))))


@pytest.mark.parametrize("behaviour", [only_reads, asks_at_once, begins_before_it_reads, asks_in_between, breaks_off])
async def test_a_reader_lends_what_the_streaming_model_needs(models: Models, behaviour: Behaviour) -> None:
    models.add("many", sends_many, ONE_UNIT + DECOUPLED)
    models.add("double", double, ONE_UNIT)
    models.add("outer", behaviour, ONE_UNIT)

    async with models.running(rate_limit="execution_count") as server:
        answers = [value(await server.infer(request("outer", 1))) for _ in range(3)]

    assert answers == [500] * 3
