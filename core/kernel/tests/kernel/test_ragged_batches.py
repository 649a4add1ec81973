"""Requests of different lengths in one batch, from the server's door to the backend and back."""

import asyncio
from itertools import pairwise
from pathlib import Path

import numpy as np

from naiad import Server
from naiad.backend import Answer, Batch
from naiad.types import Request, Response
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import running
from naiad_testing.scheduling import AllAtOnce, Scheduling

RAGGED = """
    max_batch_size: 8 dynamic_batching { }
    input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
    output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
    output { name: "SUM" data_type: TYPE_FP32 dims: [ 1 ] }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "OFFSETS" data_type: TYPE_INT32
                  source_input: "INPUT" }
    batch_output { target_name: "OUTPUT" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "INPUT" }
"""
SHAPES = """
    max_batch_size: 8 dynamic_batching { }
    input { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }
    input { name: "SHAPE" data_type: TYPE_INT32 dims: [ 1 ] is_shape_tensor: true }
    output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""


def ragged(*values: float) -> Request:
    return Request("m", {"INPUT": Tensor.of("INPUT", np.array([values], dtype=np.float32))})


async def sent_together(server: Server, backend: FakeBackend, *requests: Request) -> list[Response]:
    """The answers to requests that all waited while an instance executed another one."""
    backend.hold()
    first = asyncio.ensure_future(server.infer(requests[0]))
    await asyncio.to_thread(backend.wait_until_held)
    others = [asyncio.ensure_future(server.infer(each)) for each in requests[1:]]
    await asyncio.sleep(0)
    backend.release()
    return [await each for each in (first, *others)]


def sums(batch: Batch) -> Answer:
    """Twice every element, and the sum of each request, by the offsets that the server gives."""
    values, offsets = batch.input("INPUT"), batch.input("OFFSETS")
    totals = [values[start:end].sum() for start, end in pairwise(offsets)]
    return {"OUTPUT": values * 2, "SUM": np.array(totals, dtype=np.float32).reshape(-1, 1)}


async def test_requests_of_different_lengths_share_a_batch(tmp_path: Path) -> None:
    backend = FakeBackend(answer=sums)
    backend.write(tmp_path, "m", RAGGED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        answers = await sent_together(server, backend, ragged(1), ragged(1, 2, 3), ragged(4, 5), ragged())
        executed = [batch.batch_size for batch in server.statistics("m")[0].batch_stats]

    assert executed == [1, 3]
    assert [answer.outputs["OUTPUT"].array.tolist() for answer in answers] == [[[2]], [[2, 4, 6]], [[8, 10]], [[]]]
    assert [answer.outputs["SUM"].array.tolist() for answer in answers] == [[[1]], [[6]], [[9]], [[0]]]


async def test_a_scattered_output_of_a_wrong_size_fails_the_whole_batch(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": np.zeros(5, dtype=np.float32)})
    backend.write(tmp_path, "m", RAGGED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        (failure,) = await asyncio.gather(server.infer(ragged(1, 2)), return_exceptions=True)

    assert "model 'm' produced 5 elements for output 'OUTPUT'" in str(failure)


async def test_a_shape_tensor_reaches_the_backend_with_the_batch_size_in_front(tmp_path: Path) -> None:
    def fill(batch: Batch) -> Answer:
        return {"OUTPUT": np.full(tuple(batch.input("SHAPE")), batch.size, dtype=np.float32)}

    def shaped(size: int) -> Request:
        inputs = {
            "INPUT": Tensor.of("INPUT", np.zeros((2, 1), dtype=np.float32)),
            "SHAPE": Tensor.of("SHAPE", np.array([size], dtype=np.int32)),
        }
        return Request("m", inputs)

    backend = FakeBackend("tensorrt", answer=fill)
    backend.write(tmp_path, "m", SHAPES)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        answers = await sent_together(server, backend, shaped(1), shaped(3), shaped(3))
        seen = [each.shape for each in server.model_metadata("m").inputs]

    assert [answer.outputs["OUTPUT"].array.tolist() for answer in answers[1:]] == [[[4, 4, 4]] * 2] * 2
    assert seen == [(-1, 1), (1,)]
