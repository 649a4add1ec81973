"""The inputs of one run as they were given: arrays of the host and tensors on the GPU, whole or in parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad.types import host_array
from naiad_tensorrt.description import EngineTensor, Shape
from naiad_tensorrt.execution.dlpack import Resident, is_on_gpu, resident
from naiad_tensorrt.execution.layout import dtype_of

_CODES = {"i": (0,), "u": (1,), "f": (2,), "b": (6, 1)}
_BF16_CODES = (4, 1)
"""DLPack's codes for each kind of numpy's dtypes; BF16 is taken as the bits that it is, too."""


@dataclass(frozen=True, slots=True)
class Given:
    """One input: parts that follow one another along dimension 0, and the whole `shape` that they have together."""

    tensor: EngineTensor
    shape: Shape
    parts: tuple[np.ndarray | Resident, ...]

    @property
    def size(self) -> int:
        """The bytes of its elements."""
        return prod(self.shape) * dtype_of(self.tensor).itemsize


def given_input(tensor: EngineTensor, value: Any, device: int, stream: int) -> Given:
    """An input from an array, from anything with `__dlpack__`, or from a list or tuple of these, joined on dimension 0.

    What lies on this GPU stays there; what lies on another one comes by way of the host. Raises InvalidArgumentError
    for a dtype that the engine does not take, and for parts that do not fit together.
    """
    values = value if isinstance(value, list | tuple) else [value]
    parts = tuple(_part(tensor, each, device, stream) for each in values)
    return Given(tensor, _joined(tensor, [tuple(part.shape) for part in parts]), parts)


def _part(tensor: EngineTensor, value: Any, device: int, stream: int) -> np.ndarray | Resident:
    dtype = dtype_of(tensor)
    if not isinstance(value, np.ndarray) and is_on_gpu(value, device):
        held = resident(value, tensor.name, stream)
        codes = _BF16_CODES if tensor.type == "BF16" else _CODES[dtype.kind]
        if held.code not in codes or held.bits != 8 * dtype.itemsize:
            raise _wrong_type(tensor, f"DLPack type {held.code} of {held.bits} bits")
        return held
    array = host_array(value)
    if array.dtype != dtype:
        raise _wrong_type(tensor, str(array.dtype))
    return array


def _wrong_type(tensor: EngineTensor, found: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"input '{tensor.name}' has elements of {found}, and the engine takes {tensor.type}, which is "
        f"{dtype_of(tensor)} in numpy; convert them"
    )


def _joined(tensor: EngineTensor, shapes: Sequence[Shape]) -> Shape:
    first = shapes[0]
    if len(shapes) == 1:
        return first
    if not first or any(shape[1:] != first[1:] or not shape for shape in shapes):
        told = ", ".join(str(list(shape)) for shape in shapes)
        raise InvalidArgumentError(f"input '{tensor.name}' comes in parts of the shapes {told}, which cannot be joined")
    return (sum(shape[0] for shape in shapes), *first[1:])
