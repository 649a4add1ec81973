"""Calls between models whose tensors lie on a device: they are handed on both ways without a copy, where asked for."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad.backend import Answer, Batch
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_kit.calls import ModelCalls
from naiad_tensors.devices import DeviceTensor, gpu
from naiad_tensors.tensors import Tensor
from naiad_testing.devices import FakeDeviceArray
from naiad_testing.in_loop import request

from .models_that_call import Calling, output_of, value

GPU = gpu(0)


class OnGpu:
    """A model that doubles on the device, and remembers what it was given and what it made."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.arrays: list[weakref.ref[FakeDeviceArray]] = []
        self.copies: list[int] = []

    def __call__(self, batch: Batch, _: ModelCalls) -> Answer:
        resident = batch.resident("INPUT", [GPU])
        self.received.append(None if resident is None else resident[0])
        array = batch.input("INPUT") if resident is None else FakeDeviceArray.over(resident[0]).memory
        answer = FakeDeviceArray(array * 2)
        self.arrays.append(weakref.ref(answer))
        return {"OUTPUT": answer}


@pytest.fixture
def called() -> OnGpu:
    return OnGpu()


@pytest.fixture
def calling(tmp_path: Path, called: OnGpu) -> Calling:
    array = Calling(tmp_path)
    array.add("called", called)
    return array


async def test_an_answer_stays_on_the_device_for_the_model_that_takes_it_there(calling: Calling, called: OnGpu) -> None:
    seen: list[tuple[Any, int]] = []

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        output = models.infer(request("called", 3, on_device={"OUTPUT": [GPU]})).outputs["OUTPUT"]
        array = called.arrays[0]()
        assert array is not None
        seen.append((output.payload, array.copies))
        assert np.shares_memory(FakeDeviceArray.over(output).memory, array.memory)
        return output_of(float(output.array[0]))

    calling.add("caller", behaviour)

    async with calling.running() as server:
        assert value(await server.infer(request("caller", 1))) == 6

    ((payload, copies),) = seen
    assert (type(payload), copies) == (DeviceTensor, 0)


async def test_a_model_that_says_nothing_gets_arrays(calling: Calling) -> None:
    seen: list[Any] = []

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        seen.append(models.infer(request("called", 3)).outputs["OUTPUT"].payload)
        return output_of(1)

    calling.add("caller", behaviour)

    async with calling.running() as server:
        await server.infer(request("caller", 1))

    assert type(seen[0]) is np.ndarray


@pytest.mark.parametrize("array", [Tensor.of, lambda name, held: Tensor(name, "FP32", (2,), held)])
async def test_a_tensor_is_given_to_the_called_model_where_it_is(calling: Calling, called: OnGpu, array: Any) -> None:
    held = FakeDeviceArray(np.array([4, 5], np.float32))

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        message = Request("called", {"INPUT": array("INPUT", held)})
        return {"OUTPUT": models.infer(message).outputs["OUTPUT"].array}

    calling.add("caller", behaviour)

    async with calling.running() as server:
        response = await server.infer(request("caller", 1))

    assert response.outputs["OUTPUT"].array.tolist() == [8, 10]
    assert np.shares_memory(FakeDeviceArray.over(called.received[0]).memory, held.memory)
    assert held.copies == 0


async def test_a_model_on_the_cpu_reads_it_from_the_host(calling: Calling) -> None:
    held = FakeDeviceArray(np.array([4, 5], np.float32))
    calling.add("plain", lambda batch, _: {"OUTPUT": batch.input("INPUT") + batch.input("INPUT")})
    calling.add(
        "caller",
        lambda batch, models: {
            "OUTPUT": models.infer(Request("plain", {"INPUT": Tensor.of("INPUT", held)})).outputs["OUTPUT"].array
        },
    )

    async with calling.running() as server:
        response = await server.infer(request("caller", 1))

    assert response.outputs["OUTPUT"].array.tolist() == [8, 10]
    assert held.copies == 1


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (("INT32", (2,), np.float32), r"says INT32 \[2\]|data-type is 'INT32'"),
        (("FP32", (3,), np.float32), r"says FP32 \[3\] and holds FP32 \[2\] on device \(2, 0\)"),
        (("FP32", (2,), np.float64), r"says FP32 \[2\] and holds FP64 \[2\] on device \(2, 0\)"),
    ],
)
async def test_what_a_tensor_says_is_held_against_what_it_holds(calling: Calling, tensor: Any, message: str) -> None:
    datatype, shape, dtype = tensor
    held = FakeDeviceArray(np.zeros(2, dtype))

    async with calling.running() as server:
        with pytest.raises(InvalidArgumentError, match=message):
            await server.infer(Request("called", {"INPUT": Tensor("INPUT", datatype, shape, held)}))

    assert held.copies == 0


async def test_what_stayed_is_free_when_the_caller_has_let_go_of_it(calling: Calling, called: OnGpu) -> None:
    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        response = models.infer(request("called", 3, on_device={"OUTPUT": [GPU]}))
        assert called.arrays[0]() is not None
        return output_of(value(response))

    calling.add("caller", behaviour)
    gc.disable()

    try:
        async with calling.running() as server:
            await server.infer(request("caller", 1))
            await server.infer(request("called", 1))  # its worker has let go of the batch before
            assert called.arrays[0]() is None
    finally:
        gc.enable()
