"""CUDA shared memory: GPU memory of another process, used in place or copied from and to host memory."""

import weakref
from typing import Protocol

import numpy as np

from naiad.errors import InvalidArgumentError, NaiadError
from naiad_kit.buffers import Buffer
from naiad_shared_memory.cuda_driver import HANDLE_SIZE
from naiad_shared_memory.extents import check_extent, check_piece, check_room, host_bytes
from naiad_tensors.devices import DeviceTensor, gpu


class Gpus(Protocol):
    """What is needed of CUDA. Every method raises InvalidArgumentError or UnavailableError when CUDA refuses."""

    def open(self, handle: bytes, device: int) -> tuple[int, int]:
        """The address of the memory that the handle stands for, and how many bytes there are from it on."""
        ...

    def close(self, address: int, device: int) -> None:
        """Give the memory back; never raises."""
        ...

    def to_host(self, address: int, device: int, array: np.ndarray) -> None:
        """Fill the array from there; returns when it is done."""
        ...

    def to_device(self, address: int, device: int, content: Buffer) -> None:
        """Copy the bytes to there; returns when it is done."""
        ...


class DeviceMemory:
    """The first `byte_size` bytes of an allocation on a GPU, which is given back with the last user of this."""

    def __init__(self, name: str, gpus: Gpus, address: int, device: int, byte_size: int) -> None:
        self.name = name
        self._gpus = gpus
        self._address = address
        self._device = device
        self._size = byte_size
        self.device = gpu(device)
        weakref.finalize(self, gpus.close, address, device)

    def check(self, offset: int, byte_size: int) -> None:
        """Raise InvalidArgumentError unless these bytes lie within the region."""
        check_piece(self.name, self._size, offset, byte_size)

    def tensor(self, offset: int, datatype: str, shape: tuple[int, ...]) -> DeviceTensor:
        """The tensor whose bytes, which lie within the region, begin there; where it is, without a copy."""
        return DeviceTensor.at(self._address + offset, self.device, datatype, shape, self)

    def lend(self, offset: int, byte_size: int) -> None:
        """None: the host cannot read it where it is."""

    def shrunk(self) -> InvalidArgumentError:
        """What to say when lent bytes were taken away."""
        return InvalidArgumentError(f"shared memory region '{self.name}' is not there any more")

    def take(self, offset: int, byte_size: int, tensor: DeviceTensor, output: str) -> None:
        """Copy a tensor, which lies on this GPU without gaps, to the `byte_size` bytes from `offset` on.

        Raises InvalidArgumentError when it is larger, and UnavailableError.
        """
        self.check(offset, byte_size)
        check_room(self.name, output, tensor.nbytes, byte_size)
        tensor.copy_to(self._address + offset)

    def read(self, offset: int, byte_size: int) -> np.ndarray:
        """A copy of these bytes in host memory. Raises InvalidArgumentError when they are not there."""
        self.check(offset, byte_size)
        array = host_bytes(self.name, byte_size)
        if byte_size:
            self._gpus.to_host(self._address + offset, self._device, array)
        return array

    def write(self, offset: int, byte_size: int, content: Buffer, output: str) -> None:
        """Put the bytes there; `output` is the tensor that they are, for the error.

        Raises InvalidArgumentError when they are more than `byte_size` bytes.
        """
        self.check(offset, byte_size)
        check_room(self.name, output, len(content), byte_size)
        if content:
            self._gpus.to_device(self._address + offset, self._device, content)


def open_device_memory(name: str, gpus: Gpus, handle: bytes, device: int, byte_size: int) -> DeviceMemory:
    """The region `name` over the allocation that the handle stands for. Raises InvalidArgumentError."""
    check_extent(name, 0, byte_size)
    if len(handle) != HANDLE_SIZE:
        raise InvalidArgumentError(
            f"failed to register CUDA shared memory region '{name}': its raw handle has {len(handle)} bytes, a CUDA "
            f"IPC memory handle has {HANDLE_SIZE}"
        )
    if not 0 <= device < 2**31:  # more than CUDA's numbers have bits for
        raise InvalidArgumentError(f"failed to register CUDA shared memory region '{name}': there is no GPU {device}")
    try:
        address, there = gpus.open(handle, device)
    except NaiadError as error:
        raise type(error)(f"failed to register CUDA shared memory region '{name}': {error}") from error
    if there < byte_size:
        gpus.close(address, device)
        raise InvalidArgumentError(
            f"failed to register shared memory region '{name}': invalid args: its byte size is {byte_size}, and the "
            f"allocation on GPU {device} has {there} bytes"
        )
    return DeviceMemory(name, gpus, address, device, byte_size)
