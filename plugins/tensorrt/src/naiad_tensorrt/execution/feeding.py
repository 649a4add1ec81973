"""Bringing inputs to the GPU: through page-locked memory or as they lie, filled up and laid out as the engine wants."""

import numpy as np

from naiad.devices import DeviceTensor
from naiad_tensorrt.description import Shape
from naiad_tensorrt.execution.buffers import Staging
from naiad_tensorrt.execution.given import Given
from naiad_tensorrt.execution.layout import dtype_of, memory_size, pack
from naiad_tensorrt.execution.seam import Cuda


class Feeder:
    """Puts copies to the GPU on a stream. `pinned` goes through page-locked memory, one buffer for each input.

    What was given must stay as it is until the stream has done the copies, and so must the buffers: one run at a time.
    """

    def __init__(self, cuda: Cuda, stream: int, pinned: bool) -> None:
        self._cuda = cuda
        self._stream = stream
        self._pinned = pinned
        self._staging = Staging(cuda)
        self._held: list[np.ndarray] = []

    def feed(self, given: Given, shape: Shape, address: int) -> None:
        """Fill the memory at `address` with the input in the layout of its tensor, and zeros up to this whole shape.

        Parts on the GPU are copied there; only where they have to be filled up inside, or are no longer linear, they
        pass through the host.
        """
        rows_alone = given.tensor.is_linear and given.shape[1:] == shape[1:]
        if rows_alone:
            used = self._feed_parts(given, address)
        else:
            laid = self._laid_out(given, shape)
            used = laid.nbytes
            self._send(given.tensor.name, [laid], address, 0)
        left = memory_size(given.tensor, shape) - used
        if left:
            self._cuda.fill_zero(address + used, left, self._stream)

    def whole(self, given: Given) -> np.ndarray:
        """The input as one array of the host. Waits for the stream where a part is on the GPU."""
        arrays = [self._fetched(part, given) if isinstance(part, DeviceTensor) else part for part in given.parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def forget(self) -> None:
        """The copies are done: what they were made from is not needed any more."""
        self._held.clear()

    def close(self) -> None:
        """Give the page-locked memory back."""
        self._staging.close()

    def _feed_parts(self, given: Given, address: int) -> int:
        if self._pinned and not all(isinstance(part, DeviceTensor) for part in given.parts):
            # once for all parts: it may not grow while a copy from it is due
            self._staging.of(given.tensor.name).bytes(given.size)
        offset = sent = 0
        waiting: list[np.ndarray] = []
        for part in given.parts:
            if isinstance(part, DeviceTensor):
                self._send(given.tensor.name, waiting, address, sent)
                if part.nbytes:
                    self._cuda.copy_on_device(address + offset, part.address, part.nbytes, self._stream)
                waiting, sent = [], offset + part.nbytes
                offset = sent
            else:
                waiting.append(part)
                offset += part.nbytes
        self._send(given.tensor.name, waiting, address, sent)
        return offset

    def _send(self, name: str, arrays: list[np.ndarray], address: int, offset: int) -> None:
        """Copy arrays to the bytes from `offset` on, in one piece where they are staged."""
        size = sum(array.nbytes for array in arrays)
        if not size:
            return
        if self._pinned:
            staging = self._staging.of(name)
            _write(staging.bytes(offset + size)[offset:], arrays)
            self._cuda.copy_to_device(address + offset, staging.address + offset, size, self._stream)
            return
        for array in arrays:
            lying = np.ascontiguousarray(array)
            self._held.append(lying)
            self._cuda.copy_to_device(address + offset, lying.ctypes.data, lying.nbytes, self._stream)
            offset += lying.nbytes

    def _laid_out(self, given: Given, shape: Shape) -> np.ndarray:
        array = self.whole(given)
        if array.shape != shape:
            filled = np.zeros(shape, array.dtype)
            filled[tuple(slice(dim) for dim in array.shape)] = array
            array = filled
        return pack(given.tensor, array)

    def _fetched(self, part: DeviceTensor, given: Given) -> np.ndarray:
        array = np.empty(part.shape, dtype_of(given.tensor))
        if part.nbytes:
            self._cuda.copy_to_host(array.ctypes.data, part.address, part.nbytes, self._stream)
            self._cuda.synchronize_stream(self._stream)
        return array


def _write(target: np.ndarray, arrays: list[np.ndarray]) -> None:
    offset = 0
    for array in arrays:
        place = target[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(place, array)
        offset += array.nbytes
