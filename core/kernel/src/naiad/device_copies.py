"""Copies of tensors on a device: to host memory, and to another address on the same device."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from naiad.datatypes import TENSOR_TYPES
from naiad.dlpack import HOST_TYPES, Capsule, Content, as_bits, content_of
from naiad.errors import NaiadError, UnavailableError

if TYPE_CHECKING:
    from naiad.cuda_driver import CudaDriver

_CUDA = 2
_CPU = (1, 0)


def host_copy(owner: Any, content: Content) -> np.ndarray:
    """What `owner` has on a device, in host memory; BF16 as `uint16` bits.

    Its framework copies, by `dl_device` of the array API standard 2023.12, else the driver of CUDA does. Raises
    UnavailableError when neither can.
    """
    try:
        capsule = owner.__dlpack__(dl_device=_CPU)
    except (TypeError, ValueError, BufferError, NotImplementedError, RuntimeError) as error:
        return copied_by_driver(content, error)
    if content_of(capsule).device[0] not in HOST_TYPES:
        return copied_by_driver(content, BufferError(f"asked for a copy on the host it gave one on {content.device}"))
    array: np.ndarray = np.from_dlpack(Capsule(as_bits(capsule)))
    return array.reshape(content.shape)


def copied_by_driver(content: Content, reason: Exception | None = None) -> np.ndarray:
    """What the memory of a GPU holds, in host memory; `reason` is why its framework did not copy it.

    Raises UnavailableError.
    """
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
        except NaiadError as error:
            raise UnavailableError(f"{start}: {error}") from error
    return array


def copied_on_device(source: Content, address: int) -> None:
    """Copy what lies in C order on a GPU to another address on it. Raises UnavailableError, or InvalidArgumentError."""
    if source.nbytes:
        driver().within(source.address, address, source.device[1], source.nbytes)


@functools.cache
def driver() -> "CudaDriver":
    """The driver of CUDA, loaded when it is first needed. Raises InvalidArgumentError where there is none."""
    from naiad.cuda_driver import load_cuda

    return load_cuda()
