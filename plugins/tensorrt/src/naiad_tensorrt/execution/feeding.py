"""Input feeding: copies inputs to the GPU, directly or through page-locked memory, padded and laid out as needed."""

import numpy as np

from naiad_tensorrt.description import Shape
from naiad_tensorrt.execution.buffers import Staging
from naiad_tensorrt.execution.cuda_protocol import Cuda
from naiad_tensorrt.execution.input_parts import InputParts
from naiad_tensorrt.execution.layout import dtype_of, memory_size, pack
from naiad_tensors.devices import DeviceTensor


class Feeder:
    """Puts copies to the GPU on a stream. `pinned` goes through page-locked memory, one buffer for each input.

    Sources and buffers must stay unchanged until the stream has done the copies: one run at a time.
    """

    def __init__(self, cuda: Cuda, stream: int, pinned: bool) -> None:
        self._cuda = cuda
        self._stream = stream
        self._pinned = pinned
        self._staging = Staging(cuda)
        self._held: list[np.ndarray] = []

    def feed(self, source: InputParts, shape: Shape, address: int) -> None:
        """Fill the memory at `address` with the input in the layout of its tensor, and zeros up to this whole shape.

        Parts on the GPU are copied there; only where they have to be filled up inside, or are no longer linear, they
        pass through the host.
        """
        rows_alone = source.tensor.is_linear and source.shape[1:] == shape[1:]
        if rows_alone:
            used = self._feed_parts(source, address)
        else:
            laid = self._laid_out(source, shape)
            used = laid.nbytes
            self._send(source.tensor.name, [laid], address, 0)
        remaining = memory_size(source.tensor, shape) - used
        if remaining:
            self._cuda.fill_zero(address + used, remaining, self._stream)

    def whole(self, source: InputParts) -> np.ndarray:
        """The input as one array of the host. Waits for the stream where a part is on the GPU."""
        arrays = [self._fetched(part, source) if isinstance(part, DeviceTensor) else part for part in source.parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def forget(self) -> None:
        """The copies are done: what they were made from is not needed any more."""
        self._held.clear()

    def close(self) -> None:
        """Give the page-locked memory back."""
        self._staging.close()

    def _feed_parts(self, source: InputParts, address: int) -> int:
        if self._pinned and not all(isinstance(part, DeviceTensor) for part in source.parts):
            # once for all parts: it may not grow while a copy from it is due
            self._staging.of(source.tensor.name).bytes(source.size)
        offset = sent = 0
        waiting: list[np.ndarray] = []
        for part in source.parts:
            if isinstance(part, DeviceTensor):
                self._send(source.tensor.name, waiting, address, sent)
                if part.nbytes:
                    self._cuda.copy_on_device(address + offset, part.address, part.nbytes, self._stream)
                waiting, sent = [], offset + part.nbytes
                offset = sent
            else:
                waiting.append(part)
                offset += part.nbytes
        self._send(source.tensor.name, waiting, address, sent)
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

    def _laid_out(self, source: InputParts, shape: Shape) -> np.ndarray:
        array = self.whole(source)
        if array.shape != shape:
            filled = np.zeros(shape, array.dtype)
            filled[tuple(slice(dim) for dim in array.shape)] = array
            array = filled
        return pack(source.tensor, array)

    def _fetched(self, part: DeviceTensor, source: InputParts) -> np.ndarray:
        array = np.empty(part.shape, dtype_of(source.tensor))
        if part.nbytes:
            self._cuda.copy_to_host(array.ctypes.data, part.address, part.nbytes, self._stream)
            self._cuda.synchronize_stream(self._stream)
        return array


def _write(target: np.ndarray, arrays: list[np.ndarray]) -> None:
    offset = 0
    for array in arrays:
        region = target[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(region, array)
        offset += array.nbytes
