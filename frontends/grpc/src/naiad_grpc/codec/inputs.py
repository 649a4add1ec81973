"""Decoder of the `inputs` of a request: tensors from typed contents, and descriptions of the other inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec.contents import array_of_contents
from naiad_grpc.codec.framing import RAW_TAG, header
from naiad_grpc.codec.references import Reference, read_reference
from naiad_kit.buffers import bool_array, unpack_strings
from naiad_kit.frontends.shapes import count_elements
from naiad_kit.shared_memory import SharedInput
from naiad_tensors.datatypes import TensorType, tensor_type
from naiad_tensors.tensors import Tensor

_MANY_DIMENSIONS = 64


class Input(NamedTuple):
    """An input in the raw contents.

    `size` is its number of bytes, -1 for BYTES, which have their own lengths. For an `is_plain` input a view on the
    bytes is enough if they are aligned. `header` is the field header in front of them in the message, of `header_size`
    bytes.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    elements: int
    size: int
    is_plain: bool
    header: bytes
    header_size: int


@dataclass(slots=True)
class Inputs:
    """All inputs of a request: tensors from typed contents, inputs in the raw contents, and inputs in shared memory.

    `names` are those of all inputs, in order.
    """

    names: dict[str, None] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    raw: list[Input] = field(default_factory=list)
    shared: list[SharedInput] = field(default_factory=list)


def read_inputs(messages: Sequence[Any], model: str, has_raw: bool) -> Inputs:
    """The inputs of a request; errors name `model`, and `has_raw` says whether the request has raw contents.

    Raises InvalidArgumentError for what is invalid for every model.
    """
    inputs = Inputs()
    for tensor in messages:
        name: str = tensor.name
        if name in inputs.names:
            raise InvalidArgumentError(f"input '{name}' already exists in request; name each input once")
        inputs.names[name] = None
        kind = tensor_type(tensor.datatype, f"input '{name}' for model '{model}'")
        shape = _shape(tensor, kind, model)
        count = count_elements(shape, kind.itemsize, name)
        reference = read_reference(tensor.parameters, f"input '{name}'") if tensor.parameters else None
        if reference is not None:
            _check_reference(tensor, reference, kind, count, model)
            inputs.shared.append(SharedInput(name, kind.wire, shape, kind.dtype, count, *reference))
        elif not tensor.HasField("contents"):
            inputs.raw.append(_input(name, kind, shape, count))
        elif has_raw:
            raise InvalidArgumentError(
                f"contents field must not be specified when using raw_input_contents for '{name}' for model '{model}'"
            )
        else:
            array = array_of_contents(tensor.contents, name, kind, shape, count, model)
            inputs.tensors[name] = Tensor(name, kind.wire, shape, array)
    return inputs


def array_of_bytes(raw: Input, content: bytes | memoryview, start: int, size: int, model: str) -> np.ndarray:
    """The array of an input over `size` bytes at offset `start`; strings are copied.

    Raises InvalidArgumentError if the bytes do not fit the tensor.
    """
    if raw.size < 0:
        strings = unpack_strings(content[start : start + size], raw.elements, raw.name, model)
        return strings.reshape(raw.shape)
    if size != raw.size:
        raise _wrong_size(raw.name, raw.size, size, model)
    if raw.is_plain:
        return np.ndarray(raw.shape, raw.dtype, content, start)
    return bool_array(raw.shape, content, start)


def _shape(tensor: Any, kind: TensorType, model: str) -> tuple[int, ...]:
    if len(tensor.shape) > _MANY_DIMENSIONS:
        count_elements(tensor.shape, kind.itemsize, tensor.name)  # refuses millions of them without a copy
    shape = tuple(tensor.shape)
    if shape and min(shape) < 0:
        raise InvalidArgumentError(
            f"All input dimensions should be specified for input '{tensor.name}' for model '{model}', "
            f"got [{','.join(map(str, shape))}]"
        )
    return shape


def _input(name: str, kind: TensorType, shape: tuple[int, ...], count: int) -> Input:
    size = count * kind.itemsize if kind.itemsize else -1
    front = header(RAW_TAG, size) if size >= 0 else b""
    is_plain = kind.wire not in ("BYTES", "BOOL")
    return Input(name, kind.wire, shape, kind.dtype, count, size, is_plain, front, len(front))


def _check_reference(tensor: Any, reference: Reference, kind: TensorType, count: int, model: str) -> None:
    if tensor.HasField("contents"):
        raise InvalidArgumentError(
            f"unexpected 'content' provided when using shared memory for input tensor '{tensor.name}' "
            f"for model '{model}'; it can be in one place only"
        )
    if kind.itemsize and reference.byte_size != count * kind.itemsize:
        raise _wrong_size(tensor.name, count * kind.itemsize, reference.byte_size, model)


def _wrong_size(name: str, expected: int, got: int, model: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"input byte size mismatch for input '{name}' for model '{model}'. Expected {expected}, got {got}"
    )
