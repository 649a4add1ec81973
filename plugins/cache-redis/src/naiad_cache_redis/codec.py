"""Wire format of a cached response: four magic bytes, the length of a JSON header, the header, the tensors.

The tensors follow each other in the order of the header: C order, native byte order (which is a part of every key), and
BYTES as all lengths of its elements (64 bits each) before the elements. What was not written so is refused.
"""

import json
import math
import struct
from typing import Any

import numpy as np

from naiad.errors import NaiadError
from naiad.types import ParameterValue
from naiad_kit.caches import CachedResponse
from naiad_tensors.datatypes import tensor_type
from naiad_tensors.tensors import Tensor

_MAGIC = b"NRC1"
_HEAD = struct.Struct("<4sI")
_STRANGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, struct.error)
"""What reading something else raises."""


class ForeignValueError(ValueError):
    """These bytes are not a response that was written here."""


def encode(response: CachedResponse) -> bytes:
    """The response in bytes."""
    contents = [_content(tensor) for tensor in response.outputs]
    described = [
        [tensor.name, tensor.datatype, list(map(int, tensor.shape)), len(content)]
        for tensor, content in zip(response.outputs, contents, strict=True)
    ]
    header = json.dumps({"outputs": described, "parameters": dict(response.parameters)}).encode()
    return b"".join([_HEAD.pack(_MAGIC, len(header)), header, *contents])


def decode(content: bytes) -> CachedResponse:
    """The response in these bytes, whose tensors are views on them. Raises ForeignValueError."""
    try:
        return _decode(content)
    except (*_STRANGE, NaiadError) as error:
        raise ForeignValueError(f"{len(content)} bytes are not a response: {error}") from error


def _decode(content: bytes) -> CachedResponse:
    magic, length = _HEAD.unpack_from(content)
    if magic != _MAGIC:
        raise ForeignValueError("they begin with something else")
    offset = _HEAD.size + length
    header: dict[str, Any] = json.loads(content[_HEAD.size : offset])
    tensors = []
    for name, datatype, dims, byte_size in header["outputs"]:
        if not isinstance(name, str) or byte_size < 0 or offset + byte_size > len(content):
            raise ForeignValueError("a tensor is not all there")
        tensors.append(_tensor(name, datatype, tuple(dims), memoryview(content)[offset : offset + byte_size]))
        offset += byte_size
    if offset != len(content):
        raise ForeignValueError("there is something behind the last tensor")
    return CachedResponse.over(tuple(tensors), _parameters(header["parameters"]))


def _content(tensor: Tensor) -> bytes | memoryview:
    array = tensor.array
    if tensor.datatype != "BYTES":
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    elements = array.ravel().tolist()
    return struct.pack(f"<{len(elements)}Q", *map(len, elements)) + b"".join(elements)


def _tensor(name: str, datatype: str, shape: tuple[int, ...], content: memoryview) -> Tensor:
    if any(not isinstance(size, int) or size < 0 for size in shape):
        raise ForeignValueError(f"the shape {shape} is invalid")
    if datatype != "BYTES":
        return Tensor(name, datatype, shape, np.frombuffer(content, tensor_type(datatype).dtype).reshape(shape))
    elements = _elements(content, math.prod(shape))  # fails before memory is taken for more elements than there are
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    array.flags.writeable = False
    return Tensor(name, datatype, shape, array.reshape(shape))


def _elements(content: memoryview, count: int) -> list[bytes]:
    offset = 8 * count
    elements = []
    for length in struct.unpack(f"<{count}Q", content[:offset]):
        elements.append(bytes(content[offset : offset + length]))
        offset += length
    if offset != len(content):
        raise ForeignValueError("the elements of a BYTES tensor have other lengths")
    return elements


def _parameters(read: dict[str, ParameterValue]) -> dict[str, ParameterValue]:
    if not all(isinstance(value, bool | int | float | str) for value in read.values()):
        raise ForeignValueError("a parameter is not a number, text or truth")
    return read
