"""Regions over memory of a GPU, with GPUs that are arrays; what only a real one can show is in test_real_gpus."""

import ctypes

import numpy as np
import pytest

from naiad.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnavailableError
from naiad_kit.shared_memory import CudaRegion
from naiad_shared_memory.regions import SharedMemory

HANDLE = bytes(range(64))
BASE = 0x7F00_0000


class FakeGpus:
    """One GPU, number 0, whose memory is an array at BASE; `lost` makes every copy fail."""

    def __init__(self, byte_size: int = 64) -> None:
        self.memory = np.arange(byte_size, dtype=np.uint8)
        self.opened: list[bytes] = []
        self.closed: list[tuple[int, int]] = []
        self.lost = False

    def open(self, handle, device):
        if ctypes.c_int(device).value != 0:
            raise InvalidArgumentError(f"CUDA could not find GPU {device}")
        self.opened.append(handle)
        return BASE, len(self.memory)

    def close(self, address, device):
        self.closed.append((address, device))

    def to_host(self, address, device, array):
        self._check()
        array[:] = self.memory[address - BASE :][: len(array)]

    def to_device(self, address, device, content):
        self._check()
        self.memory[address - BASE :][: len(content)] = np.frombuffer(content, np.uint8)

    def _check(self):
        if self.lost:
            raise UnavailableError("CUDA could not copy")


@pytest.fixture
def gpus():
    return FakeGpus()


@pytest.fixture
def memory(gpus):
    return SharedMemory(allowed=True, gpus=lambda: gpus)


def test_a_region_is_the_allocation_that_the_handle_stands_for(memory, gpus):
    memory.register_cuda("r", HANDLE, 0, 32)

    assert memory.region("r").read(8, 4).tolist() == [8, 9, 10, 11]
    assert gpus.opened == [HANDLE]
    assert memory.status("cuda") == [CudaRegion("r", 0, 32)]
    assert memory.status("cuda", "r") == [CudaRegion("r", 0, 32)]
    assert memory.status("system") == []


@pytest.mark.parametrize("device", [2**31, 2**32, 2**64, -(2**32)])
def test_a_number_that_is_too_large_for_cuda_is_no_gpu(memory, gpus, device):
    with pytest.raises(InvalidArgumentError, match=f"region 'r': there is no GPU {device}"):
        memory.register_cuda("r", HANDLE, device, 32)

    assert gpus.opened == []


def test_an_output_is_written_where_it_belongs(memory, gpus):
    memory.register_cuda("r", HANDLE, 0, 32)

    memory.region("r").write(1, 4, b"abc", "OUT")

    assert gpus.memory[:5].tobytes() == b"\0abc\4"


def test_nothing_is_copied_where_nothing_is_asked_for(memory, gpus):
    memory.register_cuda("r", HANDLE, 0, 32)
    gpus.lost = True

    assert memory.region("r").read(0, 0).size == 0
    memory.region("r").write(0, 0, b"", "OUT")


@pytest.mark.parametrize(("offset", "byte_size"), [(32, 1), (0, 33), (31, 2), (1, 2**64 - 1), (-1, 1)])
def test_a_use_lies_within_its_region(memory, offset, byte_size):
    memory.register_cuda("r", HANDLE, 0, 32)
    region = memory.region("r")

    for use in (
        lambda: region.check(offset, byte_size),
        lambda: region.read(offset, byte_size),
        lambda: region.write(offset, byte_size, b"", "OUT"),
    ):
        with pytest.raises(InvalidArgumentError, match=r"for (shared memory )?region:? 'r'"):
            use()


def test_an_output_that_does_not_fit_is_an_error(memory, gpus):
    memory.register_cuda("r", HANDLE, 0, 32)

    with pytest.raises(InvalidArgumentError, match=r"'OUT' \(2 bytes\) .* 3 bytes"):
        memory.region("r").write(0, 2, b"abc", "OUT")

    assert gpus.memory[0] == 0


def test_a_gpu_that_is_lost_is_an_error(memory, gpus):
    memory.register_cuda("r", HANDLE, 0, 32)
    gpus.lost = True

    with pytest.raises(UnavailableError):
        memory.region("r").read(0, 1)


def test_the_allocation_is_given_back_with_the_last_user(memory, gpus):
    memory.register_cuda("r", HANDLE, 0, 32)
    held = memory.region("r")

    memory.unregister("cuda", "r")
    assert gpus.closed == []
    assert held.read(0, 1).tolist() == [0]
    del held

    assert gpus.closed == [(BASE, 0)]


def test_a_region_ends_within_its_allocation(memory, gpus):
    with pytest.raises(InvalidArgumentError, match="region 'r': invalid args"):
        memory.register_cuda("r", HANDLE, 0, 65)

    assert gpus.closed == [(BASE, 0)]
    assert memory.status("cuda") == []


@pytest.mark.parametrize("byte_size", [0, -1])
def test_a_region_has_bytes(memory, byte_size):
    with pytest.raises(InvalidArgumentError, match="region 'r': invalid args"):
        memory.register_cuda("r", HANDLE, 0, byte_size)


@pytest.mark.parametrize("length", [0, 63, 65])
def test_a_handle_has_64_bytes(memory, gpus, length):
    with pytest.raises(InvalidArgumentError, match=f"'r': its raw handle has {length} bytes"):
        memory.register_cuda("r", bytes(length), 0, 32)

    assert gpus.opened == []


def test_a_gpu_that_is_not_there_is_an_error_that_names_the_region(memory):
    with pytest.raises(InvalidArgumentError, match=r"failed to register CUDA shared memory region 'r': .* find GPU 7"):
        memory.register_cuda("r", HANDLE, 7, 32)


def test_both_kinds_share_the_names(memory, make_segment):
    memory.register_cuda("r", HANDLE, 0, 32)

    with pytest.raises(AlreadyExistsError, match="'r' already in manager"):
        memory.register_system("r", make_segment().key, 0, 8)
    with pytest.raises(NotFoundError, match="'r' is registered as CUDA shared memory, not system shared memory"):
        memory.status("system", "r")


def test_cuda_is_loaded_once_and_only_when_it_is_needed(gpus, make_segment):
    loads = []
    memory = SharedMemory(allowed=True, gpus=lambda: loads.append("load") or gpus)

    memory.register_system("s", make_segment().key, 0, 8)
    assert loads == []
    memory.register_cuda("a", HANDLE, 0, 32)
    memory.register_cuda("b", HANDLE, 0, 32)

    assert loads == ["load"]


def test_a_server_without_gpus_says_why():
    def none():
        raise InvalidArgumentError("the driver is not there")

    memory = SharedMemory(allowed=True, gpus=none)

    with pytest.raises(
        InvalidArgumentError,
        match="failed to register CUDA shared memory region: 'r', GPUs not supported: the driver is not there",
    ):
        memory.register_cuda("r", HANDLE, 0, 32)
