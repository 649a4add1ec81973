"""Output collection: copies outputs to the host, or to GPU memory that the next run does not write to."""

from dataclasses import dataclass

import numpy as np

from naiad_config import DataType
from naiad_tensorrt.description import EngineTensor, Shape
from naiad_tensorrt.execution.buffers import Staging
from naiad_tensorrt.execution.cuda_protocol import Cuda
from naiad_tensorrt.execution.layout import dtype_of, memory_shape, memory_size, unpack
from naiad_tensorrt.execution.pool import Pool
from naiad_tensors.datatypes import wire_name
from naiad_tensors.devices import DeviceTensor, gpu


@dataclass(frozen=True, slots=True)
class Computed:
    """One output of a run: the whole shape it was `computed` in, and the `shape` of what is wanted of it."""

    tensor: EngineTensor
    address: int
    computed: Shape
    shape: Shape

    @property
    def may_stay(self) -> bool:
        """Whether it lies on the GPU as it is wanted, one element after the other."""
        return self.tensor.is_linear and not self.tensor.on_host and self.laid == self.shape

    @property
    def laid(self) -> Shape:
        """The whole shape of what has to be copied: only rows at the end can be left out."""
        return self.shape if self.tensor.is_linear and self.shape[1:] == self.computed[1:] else self.computed


class Collector:
    """Puts copies from the GPU on a stream. `pinned` goes through page-locked memory, one buffer for each output."""

    def __init__(self, cuda: Cuda, stream: int, pinned: bool) -> None:
        self._cuda = cuda
        self._stream = stream
        self._pinned = pinned
        self._staging = Staging(cuda)

    def start(self, outputs: list[Computed]) -> dict[str, np.ndarray]:
        """Enqueue the copies. Returns the bytes (uint8) of each output by name, complete when the stream is done."""
        return {output.tensor.name: self._copied(output) for output in outputs}

    def finish(self, outputs: list[Computed], copied: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs as arrays, after the stream is done; copies if their memory will be reused."""
        return {output.tensor.name: self._array(output, copied[output.tensor.name]) for output in outputs}

    def close(self) -> None:
        """Give the page-locked memory back."""
        self._staging.close()

    def _copied(self, output: Computed) -> np.ndarray:
        size = memory_size(output.tensor, output.laid)
        if not self._pinned:
            target = np.empty(size, np.uint8)
            address = int(target.ctypes.data)
        else:
            staging = self._staging.of(output.tensor.name)
            target = staging.bytes(size)
            address = staging.address
        if size:
            self._cuda.copy_to_host(address, output.address, size, self._stream)
        return target

    def _array(self, output: Computed, copied: np.ndarray) -> np.ndarray:
        laid = copied.view(dtype_of(output.tensor)).reshape(memory_shape(output.tensor, output.laid))
        array = unpack(output.tensor, laid, output.laid)
        part = array[tuple(slice(dim) for dim in output.shape)]
        return np.array(part, order="C") if self._pinned or not part.flags.c_contiguous else part


class DeviceOutputKeeper:
    """Copies outputs that stay on the GPU to leased memory, which is theirs until the last reference is gone."""

    def __init__(self, cuda: Cuda, stream: int, device: int) -> None:
        self._cuda = cuda
        self._stream = stream
        self._device = device
        self._pool = Pool(cuda)

    def keep(self, output: Computed) -> DeviceTensor:
        """A tensor on the GPU, complete when the stream is done. Raises CudaError if memory is insufficient."""
        size = memory_size(output.tensor, output.shape)
        lease = self._pool.lend(size)
        if size:
            self._cuda.copy_on_device(lease.address, output.address, size, self._stream)
        wire = wire_name(output.tensor.datatype or DataType.TYPE_INVALID)
        return DeviceTensor.at(lease.address, gpu(self._device), wire, output.shape, lease)

    @property
    def memory(self) -> int:
        """The bytes on the GPU that are lent, or wait to be lent again."""
        return self._pool.size

    def close(self) -> None:
        """Release the memory; that of tensors in use follows when their last reference is gone."""
        self._pool.close()
