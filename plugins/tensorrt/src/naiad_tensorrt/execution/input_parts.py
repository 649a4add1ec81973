"""Inputs of one run: host arrays and GPU tensors, whole or in parts to be joined."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_config import DataType
from naiad_tensorrt.description import EngineTensor, Shape
from naiad_tensorrt.execution.layout import dtype_of
from naiad_tensors.datatypes import wire_name
from naiad_tensors.devices import DeviceTensor, gpu, is_on_device
from naiad_tensors.tensors import host_array


@dataclass(frozen=True, slots=True)
class InputParts:
    """One input: parts that follow one another along dimension 0, and the whole `shape` that they have together.

    Parts on the GPU are those of this instance, and their elements lie in C order without gaps.
    """

    tensor: EngineTensor
    shape: Shape
    parts: tuple[np.ndarray | DeviceTensor, ...]

    @property
    def size(self) -> int:
        """The bytes of its elements."""
        return prod(self.shape) * dtype_of(self.tensor).itemsize


def input_parts(tensor: EngineTensor, value: Any, device: int) -> InputParts:
    """An input from an array, from anything with `__dlpack__`, or from a list or tuple of these, joined on dimension 0.

    What lies on this GPU stays there; what lies on another one, or with gaps, comes by way of the host. Raises
    InvalidArgumentError for a datatype that the engine does not take, and for parts that do not fit together.
    """
    values = value if isinstance(value, list | tuple) else [value]
    parts = tuple(_part(tensor, each, device) for each in values)
    return InputParts(tensor, _joined(tensor, [tuple(part.shape) for part in parts]), parts)


def _part(tensor: EngineTensor, value: Any, device: int) -> np.ndarray | DeviceTensor:
    if not isinstance(value, np.ndarray) and is_on_device(value):
        held = DeviceTensor.of(value)
        if held.device == gpu(device) and held.is_contiguous:
            if held.datatype not in _datatypes(tensor):
                raise _wrong_type(tensor, held.datatype)
            return held
        value = held.array
    array = host_array(value)
    if array.dtype != dtype_of(tensor):
        raise _wrong_type(tensor, str(array.dtype))
    return array


def _datatypes(tensor: EngineTensor) -> tuple[str, ...]:
    """The datatypes of the protocol that the engine takes: BF16 also as the bits that it is."""
    wire = wire_name(tensor.datatype or DataType.TYPE_INVALID)
    return (wire, "UINT16") if wire == "BF16" else (wire,)


def _wrong_type(tensor: EngineTensor, actual: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"input '{tensor.name}' has elements of {actual}, and the engine takes {tensor.type}, which is "
        f"{dtype_of(tensor)} in numpy; convert them"
    )


def _joined(tensor: EngineTensor, shapes: Sequence[Shape]) -> Shape:
    first = shapes[0]
    if len(shapes) == 1:
        return first
    if not first or any(shape[1:] != first[1:] or not shape for shape in shapes):
        listed = ", ".join(str(list(shape)) for shape in shapes)
        raise InvalidArgumentError(
            f"input '{tensor.name}' comes in parts of the shapes {listed}, which cannot be joined"
        )
    return (sum(shape[0] for shape in shapes), *first[1:])
