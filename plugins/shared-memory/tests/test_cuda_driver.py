"""How the CUDA driver's library is called, with a library in its place that notes the calls."""

import ctypes

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_shared_memory.cuda_driver import LIBRARY, CudaDriver, load_cuda

HANDLE = bytes(range(64))
CONTEXT = 0xC0


class Library:
    """The functions of libcuda that are used; GPU memory is an array in the host. `broken` fails with error 999."""

    def __init__(self, broken: str = "") -> None:
        self.memory = np.arange(64, dtype=np.uint8)
        self.address = self.memory.ctypes.data
        self.broken = broken
        self.calls: list[str] = []
        self.contexts: list[int] = []

    def __getattr__(self, name):
        function = type(self).FUNCTIONS[name]

        def call(*words):
            self.calls.append(name)
            return 999 if name == self.broken else function(self, *words) or 0

        return call

    def _device(self, device, ordinal):
        device._obj.value = ordinal.value
        return 101 * (ordinal.value != 0)

    def _retain(self, context, device):
        context._obj.value = CONTEXT

    def _push(self, context):
        self.contexts.append(context.value)

    def _pop(self, context):
        context._obj.value = self.contexts.pop()

    def _open(self, address, handle, flags):
        assert self.contexts == [CONTEXT]
        assert (bytes(handle.reserved), flags.value) == (HANDLE, 1)
        address._obj.value = self.address + 16

    def _range(self, base, size, address):
        base._obj.value, size._obj.value = self.address, 64

    def _close(self, address):
        assert address.value == self.address + 16

    def _copy(self, target, source, size):
        assert self.contexts == [CONTEXT]
        ctypes.memmove(target.value, source.value, size.value)

    def _name(self, code, name):
        name._obj.value = {101: b"CUDA_ERROR_INVALID_DEVICE", 999: b"CUDA_ERROR_UNKNOWN"}[code]

    FUNCTIONS = {  # noqa: RUF012
        "cuInit": lambda self, flags: 0,
        "cuDeviceGet": _device,
        "cuDevicePrimaryCtxRetain": _retain,
        "cuCtxPushCurrent_v2": _push,
        "cuCtxPopCurrent_v2": _pop,
        "cuIpcOpenMemHandle_v2": _open,
        "cuIpcCloseMemHandle": _close,
        "cuMemGetAddressRange_v2": _range,
        "cuMemcpyDtoH_v2": _copy,
        "cuMemcpyHtoD_v2": _copy,
        "cuGetErrorName": _name,
    }


@pytest.fixture
def library():
    return Library()


@pytest.fixture
def driver(library):
    return CudaDriver(library)


def test_a_handle_becomes_an_address_and_what_there_is_from_it_on(driver, library):
    address, byte_size = driver.open(HANDLE, 0)

    assert (address, byte_size) == (library.address + 16, 48)
    assert library.contexts == []


def test_bytes_come_from_the_gpu_and_go_there(driver, library):
    address, _ = driver.open(HANDLE, 0)
    array = np.empty(4, np.uint8)

    driver.to_host(address, 0, array)
    driver.to_device(address, 0, b"abc")

    assert array.tolist() == [16, 17, 18, 19]
    assert library.memory[15:20].tobytes() == b"\x0fabc\x13"
    assert library.contexts == []


def test_a_gpu_is_prepared_once(driver, library):
    address, _ = driver.open(HANDLE, 0)

    driver.close(address, 0)

    assert library.calls.count("cuDevicePrimaryCtxRetain") == 1
    assert library.calls.count("cuIpcCloseMemHandle") == 1


def test_a_gpu_that_is_not_there_is_named_by_its_number(driver):
    with pytest.raises(InvalidArgumentError, match=r"GPU 3: CUDA_ERROR"):
        driver.open(HANDLE, 3)


@pytest.mark.parametrize("broken", ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuIpcOpenMemHandle_v2"])
def test_a_handle_that_cannot_be_opened_is_the_clients_error(driver, library, broken):
    library.broken = broken

    with pytest.raises(InvalidArgumentError, match=r"CUDA could not .*: CUDA_ERROR_UNKNOWN \(999\)"):
        driver.open(HANDLE, 0)

    assert library.contexts == []


def test_memory_whose_size_is_unknown_is_closed_again(driver, library):
    library.broken = "cuMemGetAddressRange_v2"

    with pytest.raises(InvalidArgumentError, match="could not get the size"):
        driver.open(HANDLE, 0)

    assert "cuIpcCloseMemHandle" in library.calls
    assert library.contexts == []


def test_a_copy_that_fails_is_an_error_and_leaves_the_thread_as_it_was(driver, library):
    address, _ = driver.open(HANDLE, 0)

    library.broken = "cuMemcpyDtoH_v2"
    with pytest.raises(UnavailableError, match="CUDA could not copy from the GPU: CUDA_ERROR_UNKNOWN"):
        driver.to_host(address, 0, np.empty(4, np.uint8))
    library.broken = "cuMemcpyHtoD_v2"
    with pytest.raises(UnavailableError, match="CUDA could not copy to the GPU: CUDA_ERROR_UNKNOWN"):
        driver.to_device(address, 0, b"abc")

    assert library.contexts == []


@pytest.mark.parametrize("broken", ["cuCtxPushCurrent_v2", "cuIpcCloseMemHandle"])
def test_giving_memory_back_never_fails(driver, library, broken):
    address, _ = driver.open(HANDLE, 0)
    library.broken = broken

    driver.close(address, 0)

    assert library.contexts == []


def test_a_driver_that_does_not_start_is_an_error():
    with pytest.raises(InvalidArgumentError, match="CUDA could not start CUDA: CUDA_ERROR_UNKNOWN"):
        CudaDriver(Library(broken="cuInit"))


def test_a_machine_without_the_driver_is_answered_with_what_to_install(monkeypatch):
    def missing(name):
        assert name == LIBRARY
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", missing)

    with pytest.raises(InvalidArgumentError, match=r"libcuda\.so\.1, is not there; install the driver"):
        load_cuda()


def test_the_library_of_the_machine_is_taken(monkeypatch, library):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)

    driver = load_cuda()

    assert driver.open(HANDLE, 0)[1] == 48
