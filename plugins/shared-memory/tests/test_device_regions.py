"""Regions on a GPU that a model computes on: read where they are, and written there, large tensors without the host."""

import asyncio
import ctypes

import numpy as np
import pytest

from naiad import Server
from naiad.backend import Answer, Backend, BackendTraits, Batch
from naiad.errors import InvalidArgumentError
from naiad.hookspecs import hookimpl
from naiad.types import Request
from naiad_kit.shared_memory import SharedInput
from naiad_shared_memory.regions import SharedMemory
from naiad_shared_memory.request_io import SharedContent, SharedOutput, request_io, tensor_over
from naiad_shared_memory.segments import LARGE
from naiad_tensors.datatypes import tensor_type
from naiad_tensors.devices import DeviceTensor, gpu
from naiad_tensors.tensors import Tensor
from naiad_testing.devices import FakeDeviceArray, fake_driver

SIZE = 2 * LARGE
COUNT = LARGE // 4
FLOAT = np.dtype(np.float32)
CONFIG = """backend: "device"
input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }"""


class Gpus:
    """GPU 0, whose memory is an array in the host; `crossings` are the copies between both."""

    def __init__(self):
        self.memory = np.zeros(SIZE, np.uint8)
        self.crossings = []

    def open(self, handle, device):
        return self.memory.ctypes.data, SIZE

    def close(self, address, device):
        return None

    def to_host(self, address, device, array):
        self.crossings.append("to host")
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def to_device(self, address, device, content):
        self.crossings.append("to device")
        array = np.frombuffer(content, np.uint8)
        ctypes.memmove(address, array.ctypes.data, array.nbytes)


class Doubling:
    """A backend, model and instance in one: y is x twice, on these devices; it tells where x was."""

    def __init__(self, devices):
        self.traits = BackendTraits(name="device")
        self.input_devices = devices
        self.read = []

    @hookimpl
    def naiad_backends(self) -> list[Backend]:
        return [self]

    def complete(self, context):
        return context.config

    def load(self, context):
        return self

    def instantiate(self, placement):
        return self

    def execute(self, batch: Batch) -> Answer:
        resident = batch.resident("x", self.input_devices)
        if resident is None:
            self.read.append(batch.input("x"))
            return {"y": self.read[-1] * 2}
        self.read.append(resident[0])
        return {"y": FakeDeviceArray(FakeDeviceArray.over(resident[0]).memory * 2)}

    def close(self):
        return None


@pytest.fixture
def gpus():
    return Gpus()


@pytest.fixture
def region(gpus):
    memory = SharedMemory(allowed=True, gpus=lambda: gpus)
    memory.register_cuda("r", bytes(64), 0, SIZE)
    with fake_driver():
        yield memory.region("r")


async def ask(backend, region, root, location=LARGE):
    """What the server of that backend answers to a request with its input and output in the region."""
    (root / "m" / "1").mkdir(parents=True)
    (root / "m" / "config.pbtxt").write_text(CONFIG)
    request = Request("m", {"x": Tensor("x", "FP32", (COUNT,), SharedContent(region, 0, LARGE, (COUNT,), FLOAT))})
    request.transfer = request_io(request.inputs, {"y": SharedOutput(region, LARGE, location)})
    async with Server(model_repository=[root], plugins=[backend]) as server:
        response = await server.infer(request)
    assert request.on_device is None  # the caller's own is not changed
    return response


def test_a_model_on_the_gpu_reads_and_writes_there(gpus, region, tmp_path):
    gpus.memory[:LARGE] = np.arange(COUNT, dtype=np.float32).view(np.uint8)
    backend = Doubling((gpu(0),))

    asyncio.run(ask(backend, region, tmp_path))

    assert isinstance(backend.read[0], DeviceTensor)
    assert backend.read[0].address == gpus.memory.ctypes.data
    assert gpus.memory[LARGE:].view(np.float32).tolist() == (np.arange(COUNT) * 2).tolist()
    assert gpus.crossings == []


@pytest.mark.parametrize("devices", [(), (gpu(1),)])
def test_a_model_elsewhere_gets_a_copy_in_the_host(gpus, region, tmp_path, devices):
    gpus.memory[:LARGE] = np.ones(COUNT, np.float32).view(np.uint8)
    backend = Doubling(devices)

    asyncio.run(ask(backend, region, tmp_path))

    assert type(backend.read[0]) is np.ndarray
    assert set(gpus.memory[LARGE:].view(np.float32).tolist()) == {2.0}
    assert gpus.crossings == ["to host", "to device"]


@pytest.mark.parametrize(
    ("datatype", "content", "expected"),
    [("BYTES", b"\1\0\0\0a" + bytes(4), [b"a", b""]), ("BOOL", b"\0\2", [False, True])],
)
def test_strings_and_booleans_are_copied_for_a_model_on_the_gpu_too(gpus, region, datatype, content, expected):
    gpus.memory[: len(content)] = np.frombuffer(content, np.uint8)
    described = SharedInput("x", datatype, (2,), tensor_type(datatype).dtype, 2, "r", 0, len(content))
    tensor = tensor_over(region, described, "m")

    request_io({"x": tensor}, {}).fetch({"x": tensor}, (gpu(0),))

    assert isinstance(tensor.payload, np.ndarray)
    assert tensor.payload.tolist() == expected


def test_an_output_that_is_larger_than_its_location_is_refused(region):
    location = SharedOutput(region, LARGE, LARGE)
    tensor = Tensor.of("y", FakeDeviceArray(np.zeros(COUNT + 1, np.float32)))

    with pytest.raises(InvalidArgumentError, match="'y'"):
        location.take(tensor)


def test_an_output_outside_of_its_region_is_refused(region):
    tensor = Tensor.of("y", FakeDeviceArray(np.zeros(COUNT, np.float32)))

    with pytest.raises(InvalidArgumentError, match="'r'"):
        region.take(SIZE - 4, LARGE, tensor.payload, "y")


def test_an_output_on_another_gpu_goes_by_way_of_the_host(region):
    tensor = Tensor.of("y", FakeDeviceArray(np.zeros(COUNT, np.float32), gpu(1)))

    assert not SharedOutput(region, LARGE, LARGE).take(tensor)


def test_an_output_on_a_gpu_goes_to_a_region_in_the_host_by_way_of_the_host(make_segment):
    memory = SharedMemory(allowed=True)
    memory.register_system("s", make_segment(bytes(LARGE)).key, 0, LARGE)
    tensor = Tensor.of("y", FakeDeviceArray(np.zeros(COUNT, np.float32)))

    assert not SharedOutput(memory.region("s"), 0, LARGE).take(tensor)


def test_an_input_in_the_host_is_copied_for_a_model_on_a_gpu(make_segment):
    memory = SharedMemory(allowed=True)
    memory.register_system("s", make_segment(bytes(LARGE)).key, 0, LARGE)

    assert SharedContent(memory.region("s"), 0, LARGE, (COUNT,), FLOAT).on_device("FP32", (gpu(0),)) is None


def test_a_region_keeps_its_memory_for_the_tensor_over_it(gpus):
    closed = []
    gpus.close = lambda address, device: closed.append(address)
    memory = SharedMemory(allowed=True, gpus=lambda: gpus)
    memory.register_cuda("r", bytes(64), 0, SIZE)
    tensor = memory.region("r").tensor(0, "FP32", (COUNT,))

    memory.unregister("cuda", "r")
    assert closed == []
    del tensor
    assert closed == [gpus.memory.ctypes.data]


def test_what_lies_on_a_gpu_takes_no_memory_of_the_host(region):
    assert SharedContent(region, 0, LARGE, (COUNT,), FLOAT).nbytes == -1
