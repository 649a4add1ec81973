"""Copies of tensors on a device, to host memory or on the device: by their framework, or by the CUDA driver."""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from naiad_config.errors import UnavailableError
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.dlpack import HOST_TYPES, Capsule, Content, as_bits, content_of

_CUDA = 2
_CPU = (1, 0)


def host_copy(owner: Any, content: Content) -> np.ndarray:
    """A copy of the owner's tensor in host memory; BF16 as `uint16` bits.

    The framework copies by `dl_device` (array API standard 2023.12), else the CUDA driver does. Raises
    UnavailableError if neither can.
    """
    try:
        capsule = owner.__dlpack__(dl_device=_CPU)
    except (TypeError, ValueError, BufferError, NotImplementedError, RuntimeError) as error:
        return copied_by_driver(content, error)
    device = content_of(capsule).device
    if device[0] not in HOST_TYPES:
        return copied_by_driver(content, BufferError(f"asked for a copy on the host it gave one on {device}"))
    array: np.ndarray = np.from_dlpack(Capsule(as_bits(capsule)))
    return array.reshape(content.shape)


def copied_by_driver(content: Content, reason: Exception | None = None) -> np.ndarray:
    """A copy of a GPU's memory in host memory. Raises UnavailableError with the `reason` of the framework."""
    kind, number = content.device
    start = f"the tensor of {content.datatype}{list(content.shape)} on device {content.device} cannot come to the host"
    if kind != _CUDA or not content.is_contiguous:
        raise UnavailableError(
            f"{start}: {reason or 'no framework has it'}; return a contiguous tensor whose __dlpack__ takes dl_device, "
            "or a copy in host memory"
        ) from reason
    array = np.empty(content.shape, TENSOR_TYPES[content.datatype].dtype)
    if array.nbytes:
        try:
            driver().to_host(content.address, number, array)
        except UnavailableError as error:
            raise UnavailableError(f"{start}: {error}") from error
    return array


def copied_on_device(source: Content, address: int) -> None:
    """Copy what lies in C order on a GPU to another address on it. Raises UnavailableError."""
    if source.nbytes:
        driver().within(source.address, address, source.device[1], source.nbytes)


class CudaDriver:
    """Copies in the primary context of a GPU, by the driver API (docs.nvidia.com/cuda/cuda-driver-api)."""

    def __init__(self, library: Any) -> None:
        """Raises UnavailableError without a GPU that CUDA can use."""
        self._cuda = library
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._check(library.cuInit(0), "start")

    def to_host(self, address: int, device: int, array: np.ndarray) -> None:
        """Fill the array from that address of a GPU. Raises UnavailableError."""
        target = ctypes.c_void_p(array.ctypes.data)
        self._copy(device, self._cuda.cuMemcpyDtoH_v2, target, ctypes.c_uint64(address), array.nbytes)

    def within(self, source: int, target: int, device: int, byte_size: int) -> None:
        """Copy from one address of a GPU to another; returns when that is done. Raises UnavailableError."""
        addresses = ctypes.c_uint64(target), ctypes.c_uint64(source)
        self._copy(device, self._cuda.cuMemcpyDtoD_v2, *addresses, byte_size)

    def _copy(self, device: int, function: Callable[..., int], target: Any, source: Any, byte_size: int) -> None:
        self._check(self._cuda.cuCtxPushCurrent_v2(self._context(device)), f"use GPU {device}")
        try:
            self._check(function(target, source, ctypes.c_size_t(byte_size)), "copy")
            self._check(self._cuda.cuStreamSynchronize(None), "copy")  # a copy within the GPU has only begun
        finally:
            self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def _context(self, device: int) -> ctypes.c_void_p:
        context = self._contexts.get(device)
        if context is None:
            ordinal, context = ctypes.c_int(), ctypes.c_void_p()
            self._check(self._cuda.cuDeviceGet(ctypes.byref(ordinal), ctypes.c_int(device)), f"find GPU {device}")
            self._check(self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal), f"use GPU {device}")
            self._contexts[device] = context
        return context

    def _check(self, result: int, task: str) -> None:
        if result:
            name = ctypes.c_char_p()
            self._cuda.cuGetErrorName(result, ctypes.byref(name))
            reason = name.value.decode() if name.value else "an unknown error"
            raise UnavailableError(f"CUDA could not {task}: {reason} ({result})")


@functools.cache
def driver() -> CudaDriver:
    """The CUDA driver, loaded at the first use. Raises UnavailableError without one."""
    try:
        return CudaDriver(ctypes.CDLL("libcuda.so.1"))
    except OSError as error:
        raise UnavailableError("the library of the NVIDIA driver, libcuda.so.1, is missing; install it") from error
