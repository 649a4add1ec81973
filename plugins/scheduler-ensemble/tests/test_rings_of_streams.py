"""Models that call the decoupled model of a step before them, which waits for room at theirs: both go on."""

import numpy as np
import pytest

from naiad import Request, Tensor
from naiad.backend import Answer, Batch

from .parts import Parts, ask, times
from .test_rings_of_room import Calling

MANY = 200
"""So many responses that the model is paused before it has sent all of them."""


@pytest.mark.parametrize("instances", [1, 2])
async def test_a_decoupled_step_is_not_held_back_for_one_that_calls_its_model(parts: Parts, instances: int) -> None:
    calling = Calling(parts)

    def first_of(batch: Batch) -> Answer:
        x = batch.input("x")
        models = calling.models("asks", batch)
        with_responses = models.stream(Request("many", {"x": Tensor.of("x", x)}))
        first = next(with_responses).outputs["y"].array
        with_responses.close()
        return {"y": first + np.float32(10)}

    decoupled = f"model_transaction_policy {{ decoupled: true }} instance_group {{ count: {instances} }}"
    parts.add("many", "x", "y", times(MANY), decoupled)
    parts.add("asks", "x", "y", first_of)
    parts.join("s", "A", "C", "many x=A -> y=B", "asks x=B -> y=C", scheduling="max_inflight_requests: 1")

    async with parts.serving() as server:
        responses = [each async for each in server.stream(ask("s", 0))]

    values = [float(each.outputs["C"].array[0]) for each in responses if each.outputs]
    assert values == [10.0 + number for number in range(MANY)]
