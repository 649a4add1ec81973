"""Pool of GPU memory: a lease returns its memory when its last reader is gone."""

import weakref
from collections import defaultdict
from contextlib import suppress

from naiad_tensorrt.execution.cuda import CudaError
from naiad_tensorrt.execution.cuda_protocol import Cuda

_LEAST = 256


class MemoryLease:
    """Memory at an `address`; it goes back when this object is no longer referenced, on any thread."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, address: int) -> None:
        self.address = address


class Pool:
    """Lends memory in sizes of powers of two. What is lent when it closes is given back to CUDA by its last reader.

    A lease must only be dropped after its memory was read: the pool does not wait for the GPU.
    """

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._is_open = True
        self._idle: defaultdict[int, list[int]] = defaultdict(list)
        self.size = 0

    def lend(self, size: int) -> MemoryLease:
        """At least `size` bytes. Raises CudaError when there is too little memory."""
        rounded = max(_LEAST, 1 << (size - 1).bit_length()) if size else _LEAST
        idle = self._idle[rounded]
        if idle:
            lease = MemoryLease(idle.pop())
        else:
            lease = MemoryLease(self._cuda.allocate(rounded))
            self.size += rounded
        weakref.finalize(lease, self._take_back, rounded, lease.address).atexit = False
        return lease

    def close(self) -> None:
        """Free all memory that is not leased, and from now on free leases when they return."""
        self._is_open = False
        for rounded, idle in list(self._idle.items()):
            while idle:
                self.size -= rounded
                with suppress(CudaError):
                    self._cuda.free(idle.pop())

    def _take_back(self, rounded: int, address: int) -> None:
        self._idle[rounded].append(address)
        if not self._is_open:
            self.close()
