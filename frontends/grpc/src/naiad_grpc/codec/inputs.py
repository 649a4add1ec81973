"""The `inputs` of a request: typed contents become tensors, of all others it is known what their bytes must be."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from naiad.buffers import bool_array, unpack_strings
from naiad.datatypes import TensorType, tensor_type
from naiad.errors import InvalidArgumentError
from naiad.shared_memory import SharedInput
from naiad.types import Tensor
from naiad_grpc.codec.contents import array_of_contents
from naiad_grpc.codec.framing import RAW_TAG, header
from naiad_grpc.codec.references import Reference, read_reference
from naiad_kit.frontends.shapes import count_elements

_MANY_DIMENSIONS = 64


class Input(NamedTuple):
    """An input whose bytes are elsewhere (a tuple: unpacked each request).

    `size` is how many they are, -1 when they say so themselves (BYTES). `is_plain` says that nothing but a view on them
    is needed where their place is aligned: none of its bits in `askew` is set. `header` is what is in front of them in
    the message, `header_size` bytes.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    elements: int
    size: int
    is_plain: bool
    askew: int
    header: bytes
    header_size: int


@dataclass(slots=True)
class Inputs:
    """All inputs of a request: the tensors that came as typed contents, those whose bytes follow, and those in regions.

    `names` are those of all of them, in order.
    """

    names: dict[str, None] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    raw: list[Input] = field(default_factory=list)
    shared: list[SharedInput] = field(default_factory=list)


def read_inputs(given: Sequence[Any], model: str, has_raw: bool) -> Inputs:
    """The inputs of a request to `model` (only told in errors); `has_raw` says whether raw contents come with it.

    Raises InvalidArgumentError for everything that makes no sense whatever the model is.
    """
    found = Inputs()
    for tensor in given:
        name: str = tensor.name
        if name in found.names:
            raise InvalidArgumentError(f"input '{name}' already exists in request; name each input once")
        found.names[name] = None
        kind = tensor_type(tensor.datatype, f"input '{name}' for model '{model}'")
        shape = _shape(tensor, kind, model)
        count = count_elements(shape, kind.itemsize, name)
        reference = read_reference(tensor.parameters, f"input '{name}'") if tensor.parameters else None
        if reference is not None:
            _check_reference(tensor, reference, kind, count, model)
            found.shared.append(SharedInput(name, kind.wire, shape, kind.dtype, count, *reference))
        elif not tensor.HasField("contents"):
            found.raw.append(_input(name, kind, shape, count))
        elif has_raw:
            raise InvalidArgumentError(
                f"contents field must not be specified when using raw_input_contents for '{name}' for model '{model}'"
            )
        else:
            array = array_of_contents(tensor.contents, name, kind, shape, count, model)
            found.tensors[name] = Tensor(name, kind.wire, shape, array)
    return found


def array_of_bytes(given: Input, content: bytes | memoryview, start: int, size: int, model: str) -> np.ndarray:
    """The array of an input over the `size` bytes from `start` on, which must be aligned for anything but BYTES.

    Raises InvalidArgumentError when they do not make up the tensor.
    """
    if given.size < 0:
        strings = unpack_strings(content[start : start + size], given.elements, given.name, model)
        return strings.reshape(given.shape)
    if size != given.size:
        raise _wrong_size(given.name, given.size, size, model)
    if given.is_plain:
        return np.ndarray(given.shape, given.dtype, content, start)
    return bool_array(given.shape, content, start)


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
    return Input(
        name, kind.wire, shape, kind.dtype, count, size, is_plain, max(kind.itemsize - 1, 0), front, len(front)
    )


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
