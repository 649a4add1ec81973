"""Ensembles of models on a device: tensors stay there between steps, and come to the host once where they must."""

import asyncio
import gc
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naiad_cache
import naiad_scheduler_ensemble
from naiad import Request, Server, Tensor
from naiad.errors import ModelFailedError
from naiad_tensors.devices import DeviceTensor, gpu
from naiad_testing.caches import FakeCache
from naiad_testing.devices import FakeDeviceArray
from naiad_testing.tracing import FakeTrace

from .on_devices import GPU, DeviceParts
from .parts import add, ask, infer, plus


@pytest.fixture
def parts(tmp_path: Path) -> DeviceParts:
    """One and ten on the GPU, hundred on the CPU."""
    environment = DeviceParts(tmp_path)
    environment.on_gpu("one", 1)
    environment.on_gpu("ten", 10)
    environment.add("hundred", "x", "y", plus(100))
    return environment


def answer(parts: DeviceParts, name: str) -> Any:
    """What a model's last request had as x."""
    return parts.requests[name][-1].inputs["x"].payload


async def test_a_tensor_stays_on_the_device_between_two_steps(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")

    async with parts.serving() as server:
        assert await infer(server, ask("e", 1)) == {"C": 12}

    assert np.shares_memory(FakeDeviceArray.over(answer(parts, "ten")).memory, parts.arrays["one"][0].memory)
    assert (parts.copies("one"), parts.copies("ten")) == (0, 1)


async def test_clients_get_arrays(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")

    async with parts.serving() as server:
        direct, joined = await server.infer(ask("one", name="x")), await server.infer(ask("e"))

    assert (type(direct.outputs["y"].payload), type(joined.outputs["C"].payload)) == (np.ndarray, np.ndarray)


async def test_a_step_on_the_cpu_gets_arrays(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "hundred x=B -> y=C")

    async with parts.serving() as server:
        assert await infer(server, ask("e", 1)) == {"C": 102}

    assert type(answer(parts, "hundred")) is np.ndarray
    assert parts.copies("one") == 1


async def test_steps_on_both_sides_share_one_copy(parts: DeviceParts) -> None:
    parts.add("thousand", "x", "y", plus(1000))
    steps = ("one x=A -> y=B", "ten x=B -> y=C", "hundred x=B -> y=D", "thousand x=B -> y=E")
    parts.join("e", "A", "C D E", *steps)

    async with parts.serving() as server:
        assert await infer(server, ask("e", 1)) == {"C": 12, "D": 102, "E": 1002}

    assert isinstance(answer(parts, "ten"), DeviceTensor)
    assert parts.copies("one") == 1


async def test_what_is_answered_and_read_stays_and_comes_once(parts: DeviceParts) -> None:
    parts.join("e", "A", "B C", "one x=A -> y=B", "ten x=B -> y=C")

    async with parts.serving() as server:
        response = await server.infer(ask("e", 1))

    assert np.shares_memory(FakeDeviceArray.over(answer(parts, "ten")).memory, parts.arrays["one"][0].memory)
    assert type(response.outputs["B"].payload) is np.ndarray
    assert response.outputs["B"].array.tolist() == [2] * 4
    assert parts.copies("one") == 1


async def test_it_stays_through_an_ensemble_within_another(parts: DeviceParts) -> None:
    parts.join("inner", "P", "R", "one x=P -> y=Q", "ten x=Q -> y=R")
    parts.join("outer", "A", "D", "one x=A -> y=B", "inner P=B -> R=C", "ten x=C -> y=D")

    async with parts.serving() as server:
        assert await infer(server, ask("outer", 1)) == {"D": 23}

    assert parts.copies("one") == 0
    assert parts.copies("ten") == 1


async def test_models_on_other_gpus_get_arrays(parts: DeviceParts) -> None:
    parts.on_gpu("far", 5, gpu(1))
    parts.join("e", "A", "C", "one x=A -> y=B", "far x=B -> y=C")

    async with parts.serving() as server:
        assert await infer(server, ask("e", 1)) == {"C": 7}

    assert parts.copies("one") == 1


async def test_a_batch_dimension_comes_and_goes_on_the_device(parts: DeviceParts) -> None:
    parts.on_gpu("rows", 5, more="max_batch_size: 4")
    parts.join("e", "A", "D", "one x=A -> y=B", "rows x=B -> y=C", "ten x=C -> y=D")

    async with parts.serving() as server:
        response = await server.infer(Request("e", {"A": Tensor.of("A", np.ones(4, np.float32))}))

    assert response.outputs["D"].array.tolist() == [17] * 4
    assert answer(parts, "rows").shape == (1, 4)
    assert answer(parts, "ten").shape == (4,)
    assert (parts.copies("one"), parts.copies("rows")) == (0, 0)


async def test_a_model_behind_a_cache_takes_and_gives_arrays(parts: DeviceParts) -> None:
    parts.on_gpu("kept", 5, more="response_cache { enable: true }")
    parts.join("e", "A", "D", "one x=A -> y=B", "kept x=B -> y=C", "ten x=C -> y=D")
    plugins = [parts, naiad_scheduler_ensemble, naiad_cache, FakeCache()]

    async with Server(model_repository=[parts.root], plugins=plugins, options={"cache-config": ("fake",)}) as server:
        answers = [await infer(server, ask("e", 1)) for _ in range(2)]

    assert answers == [{"D": 17}] * 2
    assert len(parts.arrays["kept"]) == 1
    assert parts.copies("kept") == 1


async def test_a_caller_in_python_may_take_what_an_ensemble_answers_on_the_device(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")
    held = FakeDeviceArray(np.ones(4, np.float32))

    async with parts.serving() as server:
        response = await server.infer(Request("e", {"A": Tensor.of("A", held)}, on_device={"C": [GPU]}))

    assert np.shares_memory(FakeDeviceArray.over(response.outputs["C"]).memory, parts.arrays["ten"][0].memory)
    assert (held.copies, parts.copies("one"), parts.copies("ten")) == (0, 0, 0)


async def test_an_ensemble_behind_a_cache_answers_with_arrays(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C", more="response_cache { enable: true }")
    plugins = [parts, naiad_scheduler_ensemble, naiad_cache, FakeCache()]

    async with Server(model_repository=[parts.root], plugins=plugins, options={"cache-config": ("fake",)}) as server:
        answers = [await server.infer(ask("e", 1, on_device={"C": [GPU]})) for _ in range(2)]

    assert [type(each.outputs["C"].payload) for each in answers] == [np.ndarray, np.ndarray]
    assert [float(each.outputs["C"].array[0]) for each in answers] == [12, 12]
    assert len(parts.arrays["ten"]) == 1


async def test_a_traced_request_tells_what_stayed_on_the_device(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")
    trace = ReadingTrace()

    async with parts.serving() as server:
        await server.infer(ask("e", 1, trace=trace))

    first, second = trace.children
    assert first.read["TENSOR_BACKEND_OUTPUT"] == second.read["TENSOR_QUEUE_INPUT"] == [[2.0] * 4]
    assert parts.copies("one") == 1


async def test_what_does_not_fit_fails_the_step_that_made_it_without_a_copy(parts: DeviceParts) -> None:
    wrong = FakeDeviceArray(np.ones(4, np.float64))
    parts.devices["wrong"] = (GPU,)
    parts.add("wrong", "x", "y", lambda batch: {"y": wrong})
    parts.join("e", "A", "C", "wrong x=A -> y=B", "ten x=B -> y=C")

    async with parts.serving() as server:
        with pytest.raises(ModelFailedError, match="'wrong' produced FP64 for output 'y'"):
            await server.infer(ask("e"))

    assert wrong.copies == 0


async def test_memory_on_the_device_is_free_when_the_request_is_over(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")
    held = DeviceMemory(np.full(4, 2, np.float32))
    parts.functions["one"] = lambda batch: {"y": held.pop()}
    gc.disable()

    try:
        async with parts.serving() as server:
            assert await infer(server, ask("e", 1)) == {"C": 12}
            parts.requests.clear()
            await infer(server, ask("ten", name="x"))  # the worker has let go of its last batch
            assert held.is_free()
    finally:
        gc.enable()


async def test_memory_is_kept_while_a_later_step_reads_it(parts: DeviceParts) -> None:
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")
    held = DeviceMemory(np.full(4, 2, np.float32))
    parts.functions["one"] = lambda batch: {"y": held.pop()}
    parts.hold("ten")

    async with parts.serving() as server:
        asking = asyncio.create_task(infer(server, ask("e", 1)))
        await parts.held()
        assert not held.is_free()
        parts.release("ten")
        assert await asking == {"C": 12}


async def test_a_join_of_both_sides_reads_each_where_it_can(parts: DeviceParts) -> None:
    parts.add("add", "a b", "y", add)
    parts.join("e", "A", "D", "add a=B b=C -> y=D", "one x=A -> y=B", "ten x=B -> y=C")

    async with parts.serving() as server:
        assert await infer(server, ask("e", 1)) == {"D": 14}

    assert (parts.copies("one"), parts.copies("ten")) == (1, 1)


class ReadingTrace(FakeTrace):
    """A trace that reads the tensors of its events into `read`, by activity."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[str, list[Any]] = {}

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        self.read.setdefault(activity, []).extend(tensor.array.tolist() for tensor in tensors)

    def child(self, model: str, version: int = 0, request_id: str = "") -> FakeTrace:
        self.children.append(ReadingTrace())
        return self.children[-1]


class DeviceMemory:
    """One array on the device that a model gives away, and whether it is still referenced."""

    def __init__(self, array: np.ndarray) -> None:
        self._array: FakeDeviceArray | None = FakeDeviceArray(array)
        self._seen = weakref.ref(self._array)

    def pop(self) -> FakeDeviceArray:
        array, self._array = self._array, None
        assert array is not None
        return array

    def is_free(self) -> bool:
        return self._seen() is None
