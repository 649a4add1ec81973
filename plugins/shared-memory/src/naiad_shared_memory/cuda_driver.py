"""CUDA IPC memory through libcuda, the driver's own library, without a framework.

The functions are those of the CUDA driver API (docs.nvidia.com/cuda/cuda-driver-api). A handle of the runtime's
`cudaIpcGetMemHandle`, which clients use, is one of the driver's `cuIpcGetMemHandle`.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_kit.buffers import Buffer

LIBRARY = "libcuda.so.1"
HANDLE_SIZE = 64
"""How many bytes a CUDA IPC memory handle has."""
_OPEN_LAZILY = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag there is


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_ubyte * HANDLE_SIZE),)


class CudaDriver:
    """The GPUs of this machine. Each keeps its primary context, which frameworks share, from its first use on."""

    def __init__(self, library: Any) -> None:
        """Raises InvalidArgumentError when there is no GPU that it can use."""
        self._cuda = library
        self._contexts: dict[int, Any] = {}
        self._check(library.cuInit(0), "start CUDA")

    def open(self, handle: bytes, device: int) -> tuple[int, int]:
        """The address of the memory that the handle stands for, and how many bytes there are from it on."""
        address, base, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t()
        with self._on(device):
            self._check(
                self._cuda.cuIpcOpenMemHandle_v2(
                    ctypes.byref(address), _Handle.from_buffer_copy(handle), ctypes.c_uint(_OPEN_LAZILY)
                ),
                "open the raw handle, which must be of another process that still holds the memory",
            )
            failed = self._cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), address)
            if failed:
                self._cuda.cuIpcCloseMemHandle(address)
            self._check(failed, "get the size of the memory")
        return address.value, size.value - (address.value - base.value)

    def close(self, address: int, device: int) -> None:
        """Give the memory back; a process that ends at the same time may have done so already."""
        try:
            with self._on(device):
                self._cuda.cuIpcCloseMemHandle(ctypes.c_uint64(address))
        except InvalidArgumentError:
            return

    def to_host(self, address: int, device: int, array: np.ndarray) -> None:
        """Fill the array from there."""
        with self._on(device):
            copied = self._cuda.cuMemcpyDtoH_v2(
                ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes)
            )
            self._check(copied, "copy from the GPU", UnavailableError)

    def to_device(self, address: int, device: int, content: Buffer) -> None:
        """Copy the bytes to there."""
        array = np.frombuffer(content, np.uint8)
        with self._on(device):
            copied = self._cuda.cuMemcpyHtoD_v2(
                ctypes.c_uint64(address), ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
            )
            self._check(copied, "copy to the GPU", UnavailableError)

    @contextmanager
    def _on(self, device: int) -> Iterator[None]:
        """Work on that GPU, and leave the thread on whichever it was before."""
        self._check(self._cuda.cuCtxPushCurrent_v2(self._context(device)), f"use GPU {device}")
        try:
            yield
        finally:
            self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def _context(self, device: int) -> Any:
        context = self._contexts.get(device)
        if context is None:
            ordinal, context = ctypes.c_int(), ctypes.c_void_p()
            self._check(self._cuda.cuDeviceGet(ctypes.byref(ordinal), ctypes.c_int(device)), f"find GPU {device}")
            self._check(self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal), f"use GPU {device}")
            self._contexts[device] = context
        return context

    def _check(
        self,
        result: int,
        task: str,
        kind: type[InvalidArgumentError | UnavailableError] = InvalidArgumentError,
    ) -> None:
        if result:
            name = ctypes.c_char_p()
            self._cuda.cuGetErrorName(result, ctypes.byref(name))
            reason = name.value.decode() if name.value else "an unknown error"
            raise kind(f"CUDA could not {task}: {reason} ({result})")


def load_cuda() -> CudaDriver:
    """The GPUs of this machine. Raises InvalidArgumentError, which says what is missing, when there are none."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise InvalidArgumentError(
            f"the library of the NVIDIA driver, {LIBRARY}, is not there; install the driver, or give the container "
            "its GPUs; system shared memory works without"
        ) from error
    return CudaDriver(library)
