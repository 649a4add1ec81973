"""DLPack capsules: shape, datatype, device and memory of the tensor in one."""

import ctypes
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_custom.triton.errors import TritonModelException
from naiad_tensors import dlpack
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.dlpack import Content


def content_of(capsule: Any) -> Content:
    """Look into an unused capsule. Raises TritonModelException when it is used up, strided or of no known dtype."""
    try:
        content = dlpack.content_of(capsule)
    except InvalidArgumentError as error:
        raise TritonModelException(str(error)) from error
    if not content.is_contiguous:
        raise TritonModelException(
            "the DLPack tensor is not contiguous; only contiguous tensors in C order are taken, so make it contiguous"
        )
    return content


def copied(content: Content) -> np.ndarray:
    """A copy of host memory that numpy has no dtype for, as `uint16`; the capsule must be alive."""
    raw = ctypes.string_at(content.address, content.nbytes) if content.nbytes else b""
    return np.frombuffer(bytearray(raw), TENSOR_TYPES[content.datatype].dtype).reshape(content.shape)
