"""Growing buffers of device and page-locked memory, kept from run to run."""

import ctypes

import numpy as np

from naiad_tensorrt.execution.cuda_protocol import Cuda

_LEAST = 256


class DeviceBuffer:
    """Memory of a GPU. Nothing may run on the GPU that uses it when it grows or is closed."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self.address = 0
        self.size = 0

    def reserve(self, size: int) -> int:
        """Make it at least `size` bytes, at least twice what it was if it has to grow; its address.

        What was in it is lost when it grows. Raises CudaError, and it is empty, when there is too little memory.
        """
        if size > self.size or self.size == 0:
            new_size = max(size, 2 * self.size, _LEAST)
            self.close()
            self.address = self._cuda.allocate(new_size)
            self.size = new_size
        return self.address

    def close(self) -> None:
        """Give the memory back."""
        address, self.address, self.size = self.address, 0, 0
        if address:
            self._cuda.free(address)


class Staging:
    """Page-locked memory of the host, one buffer for each of several names."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._buffers: dict[str, PinnedBuffer] = {}

    def of(self, name: str) -> "PinnedBuffer":
        """The buffer of that name, empty when it is first asked for."""
        buffer = self._buffers.get(name)
        if buffer is None:
            buffer = self._buffers[name] = PinnedBuffer(self._cuda)
        return buffer

    def close(self) -> None:
        """Give the memory back."""
        for buffer in self._buffers.values():
            buffer.close()
        self._buffers.clear()


class PinnedBuffer:
    """Page-locked host memory as an array of bytes. No copy may be in progress when it grows."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._bytes: np.ndarray = np.empty(0, np.uint8)
        self.address = 0

    def bytes(self, size: int) -> np.ndarray:
        """Its first `size` bytes (uint8), after it has grown to at least twice what it was if it was smaller."""
        if size > len(self._bytes) or not self.address:
            new_size = max(size, 2 * len(self._bytes), _LEAST)
            self.close()
            self.address = self._cuda.allocate_pinned(new_size)
            self._bytes = np.ctypeslib.as_array((ctypes.c_uint8 * new_size).from_address(self.address))
        return self._bytes[:size]

    def close(self) -> None:
        """Give the memory back."""
        address, self.address, self._bytes = self.address, 0, np.empty(0, np.uint8)
        if address:
            self._cuda.free_pinned(address)


class HostBuffer:
    """Memory of the host that an engine reads or writes itself, for tensors that lie on the CPU."""

    def __init__(self) -> None:
        self._words: np.ndarray = np.empty(0, np.int64)

    def reserve(self, size: int) -> int:
        """Make it at least `size` bytes; its address, which is a multiple of 8."""
        if size > self._words.nbytes or not len(self._words):
            self._words = np.zeros(max(-(-size // 8), 8), np.int64)
        return int(self._words.ctypes.data)

    def bytes(self, size: int) -> np.ndarray:
        """Its first `size` bytes (uint8)."""
        return self._words.view(np.uint8)[:size]
