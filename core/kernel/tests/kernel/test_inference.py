"""Requests through a whole server: what models see, and what callers get."""

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest

from naiad.backend import Answer, Batch, Reply
from naiad.errors import InvalidArgumentError
from naiad.types import Request, Response
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import FLOATS, off_the_loop, request, rows, running
from naiad_testing.loops import turns
from naiad_testing.scheduling import AllAtOnce, Scheduling

from .foreign import Foreign

BATCHED = "max_batch_size: 8 dynamic_batching { }"


async def test_a_request_gets_its_response(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": batch.input("INPUT") * 2})
    backend.write(tmp_path, "double")

    async with running(tmp_path, backend) as server:
        response = await server.infer(request("double", 1, 2, id="r1"))

    assert (response.model_name, response.version, response.id) == ("double", 1, "r1")
    assert response.outputs["OUTPUT"].array.tolist() == [2, 4]


async def test_a_request_alone_is_passed_as_it_came(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)
    submitted = rows("m", 1, 2)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        response = await server.infer(submitted)

    (batch,) = backend.batches
    assert batch.requests[0] is submitted
    assert batch.input("INPUT") is submitted.inputs["INPUT"].payload
    assert response.outputs["OUTPUT"].payload is submitted.inputs["INPUT"].payload


async def test_a_batch_is_joined_once_and_answered_in_views(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        responses = await asyncio.gather(*(server.infer(rows("m", *values)) for values in [(1,), (2, 3), (4,)]))

    (batch,) = backend.batches
    assert batch.sizes == [1, 2, 1]
    assert [response.outputs["OUTPUT"].array.ravel().tolist() for response in responses] == [[1], [2, 3], [4]]
    assert all(response.outputs["OUTPUT"].array.base is batch.input("INPUT") for response in responses)


async def test_what_arrives_during_an_execution_goes_together_after_it(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        backend.hold()
        first = asyncio.ensure_future(server.infer(rows("m", 1)))
        await off_the_loop(backend.wait_until_held)
        others = [asyncio.ensure_future(server.infer(rows("m", 2))) for _ in range(4)]
        await turns()
        backend.release()
        await asyncio.gather(first, *others)

    assert [batch.size for batch in backend.batches] == [1, 4]


@pytest.mark.parametrize("wire", sorted(TENSOR_TYPES))
async def test_every_datatype_goes_in_and_out(tmp_path: Path, wire: str) -> None:
    kind = TENSOR_TYPES[wire]
    declared = f"data_type: {kind.config.name} dims: [ -1 ]"
    backend = FakeBackend()
    backend.write(tmp_path, "m", f'input {{ name: "INPUT" {declared} }} output {{ name: "OUTPUT" {declared} }}')
    full = np.array([b"a\0b", b"\0"], dtype=object) if wire == "BYTES" else np.array([0, 1]).astype(kind.dtype)

    async with running(tmp_path, backend) as server:
        for array in (full, full[:0]):
            response = await server.infer(Request("m", {"INPUT": Tensor("INPUT", wire, array.shape, array)}))
            assert response.outputs["OUTPUT"].datatype == wire
            assert response.outputs["OUTPUT"].array.tolist() == array.tolist()


async def test_the_model_sees_reshaped_inputs_and_the_client_its_own_shapes(tmp_path: Path) -> None:
    backend = FakeBackend()
    reshape = "data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] }"
    backend.write(
        tmp_path, "m", f'max_batch_size: 4 input {{ name: "INPUT" {reshape} }} output {{ name: "OUTPUT" {reshape} }}'
    )

    async with running(tmp_path, backend) as server:
        response = await server.infer(rows("m", 1, 2, 3))

    assert backend.batches[0].input("INPUT").shape == (3,)
    assert response.outputs["OUTPUT"].shape == (3, 1)


async def test_optional_inputs_may_be_left_out(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": np.array([len(batch.input_names)], dtype=np.float32)})
    optional = 'input { name: "BIAS" data_type: TYPE_FP32 dims: [ 1 ] optional: true }'
    backend.write(tmp_path, "m", FLOATS + optional)
    both = request("m", 1)
    both.inputs = {**both.inputs, "BIAS": Tensor.of("BIAS", np.ones(1, dtype=np.float32))}

    async with running(tmp_path, backend) as server:
        without, with_bias = await server.infer(request("m", 1)), await server.infer(both)

    assert [each.outputs["OUTPUT"].array.tolist() for each in (without, with_bias)] == [[1], [2]]


async def test_dlpack_goes_in_and_out(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": Foreign(batch.input("INPUT") + 1)})
    backend.write(tmp_path, "m")
    array = np.array([1, 2], dtype=np.float32)

    async with running(tmp_path, backend) as server:
        response = await server.infer(Request("m", {"INPUT": Tensor("INPUT", "FP32", (2,), Foreign(array))}))

    assert response.outputs["OUTPUT"].array.tolist() == [2, 3]


async def test_replies_carry_parameters_and_errors_for_their_own_request(tmp_path: Path) -> None:
    def answer(batch: Batch) -> Answer:
        return [
            InvalidArgumentError(f"{each.id} is odd") if each.id == "b" else Reply({}, {"for": each.id})
            for each in batch.requests
        ]

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        calls = (server.infer(rows("m", 1, id=name)) for name in "abc")
        first, second, third = await asyncio.gather(*calls, return_exceptions=True)

    assert isinstance(first, Response)
    assert isinstance(third, Response)
    assert (first.parameters, third.parameters) == ({"for": "a"}, {"for": "c"})
    assert type(second) is InvalidArgumentError
    assert str(second) == "b is odd"


async def test_the_largest_version_answers_unless_another_is_asked_for(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "version_policy { all { } }", versions=(2, 10, 3))

    async with running(tmp_path, backend) as server:
        answers = [await server.infer(request("m", 1, version=version)) for version in (0, 2, 3)]

    assert [answer.version for answer in answers] == [10, 2, 3]


async def test_results_come_back_on_the_thread_of_the_loop(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    threads = []
    answered = asyncio.Event()

    def deliver(outcome: object) -> None:
        threads.append(threading.current_thread())
        answered.set()

    async with running(tmp_path, backend) as server:
        server.submit(request("m", 1), deliver)
        await answered.wait()

    assert threads == [threading.current_thread()]
