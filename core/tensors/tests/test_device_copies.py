"""The copies by the CUDA driver, with a library in its place that copies in host memory and notes the calls."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from naiad.errors import UnavailableError
from naiad_tensors.device_copies import CudaDriver, driver

CONTEXT = 0xC0


class Library:
    """The functions of libcuda that copies use; GPU memory is an array in the host. `broken` fails with error 999."""

    def __init__(self, broken: str = "") -> None:
        self.memory = np.arange(64, dtype=np.uint8)
        self.address = self.memory.ctypes.data
        self.broken = broken
        self.calls: list[str] = []
        self.contexts: list[int] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(type(self), f"_{name}")

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            return 999 if name == self.broken else function(self, *arguments) or 0

        return call

    def _cuInit(self, flags: int) -> None:
        assert flags == 0

    def _cuDeviceGet(self, device: Any, ordinal: Any) -> int:
        device._obj.value = ordinal.value
        return 101 * (ordinal.value != 0)

    def _cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> None:
        context._obj.value = CONTEXT

    def _cuCtxPushCurrent_v2(self, context: Any) -> None:
        self.contexts.append(context.value)

    def _cuCtxPopCurrent_v2(self, context: Any) -> None:
        context._obj.value = self.contexts.pop()

    def _copy(self, target: Any, source: Any, size: Any) -> None:
        assert self.contexts == [CONTEXT]
        ctypes.memmove(target.value, source.value, size.value)

    _cuMemcpyDtoH_v2 = _cuMemcpyDtoD_v2 = _copy

    def _cuStreamSynchronize(self, stream: None) -> None:
        assert self.contexts == [CONTEXT]

    def _cuGetErrorName(self, code: int, name: Any) -> None:
        name._obj.value = {101: b"CUDA_ERROR_INVALID_DEVICE", 999: b"CUDA_ERROR_UNKNOWN"}[code]


def test_bytes_of_a_gpu_come_to_the_host() -> None:
    library, array = Library(), np.empty(4, np.uint8)

    CudaDriver(library).to_host(library.address + 16, 0, array)

    assert (array.tolist(), library.contexts) == ([16, 17, 18, 19], [])


def test_bytes_are_copied_within_a_gpu_and_waited_for() -> None:
    library = Library()

    CudaDriver(library).within(library.address + 4, library.address + 8, 0, 3)

    assert library.memory[7:12].tolist() == [7, 4, 5, 6, 11]
    assert library.calls.index("cuStreamSynchronize") > library.calls.index("cuMemcpyDtoD_v2")
    assert library.contexts == []


def test_the_context_of_a_gpu_is_retained_once() -> None:
    library = Library()
    cuda = CudaDriver(library)

    for _ in range(2):
        cuda.within(library.address, library.address + 8, 0, 3)

    assert library.calls.count("cuDevicePrimaryCtxRetain") == 1


def test_a_gpu_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UnavailableError, match=r"could not find GPU 3: CUDA_ERROR_INVALID_DEVICE \(101\)"):
        CudaDriver(Library()).within(0, 0, 3, 1)


@pytest.mark.parametrize(
    "broken", ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuMemcpyDtoD_v2", "cuStreamSynchronize"]
)
def test_a_copy_that_fails_is_an_error_and_restores_the_context_of_the_thread(broken: str) -> None:
    library = Library(broken)
    cuda = CudaDriver(library)

    with pytest.raises(UnavailableError, match=r"CUDA could not .*: CUDA_ERROR_UNKNOWN \(999\)"):
        cuda.within(library.address, library.address + 8, 0, 3)

    assert library.contexts == []


def test_a_driver_that_does_not_start_is_an_error() -> None:
    with pytest.raises(UnavailableError, match="CUDA could not start: CUDA_ERROR_UNKNOWN"):
        CudaDriver(Library(broken="cuInit"))


def test_a_machine_without_the_driver_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)

    with pytest.raises(UnavailableError, match=r"libcuda\.so\.1, is missing; install it"):
        driver()
