"""Decoder of the `inputs` of an infer request: JSON, binary data after the JSON, or a shared memory region."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_http.codec.documents import as_array, as_object, as_string, as_unsigned, member
from naiad_http.codec.tensors import array_of_json, bytes_of_json
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.shapes import count_elements
from naiad_kit.shared_memory import SharedInput
from naiad_tensors.datatypes import TENSOR_TYPES, TensorType, tensor_type
from naiad_tensors.tensors import Tensor

_KINDS = dict(TENSOR_TYPES)  # a mapping proxy takes three times as long
_SOURCES = "'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'"
_NO_PARAMETERS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class BinaryInput:
    """An input of `size` bytes at offset `start` of the part after the JSON.

    `is_view`: its array is a view on those bytes, because it is neither BYTES nor BOOL and is aligned to its element
    size.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    elements: int
    start: int
    size: int
    is_view: bool


class NumbersInput(NamedTuple):
    """An input that came as numbers in JSON: its bytes, little-endian and in row-major order."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    content: Buffer

    def tensor(self) -> Tensor:
        """The tensor, a view on the bytes."""
        return Tensor(self.name, self.datatype, self.shape, np.ndarray(self.shape, self.dtype, self.content))


def read_input(
    entry: Mapping[str, Any], start: int, model: str, limit: int
) -> Tensor | NumbersInput | BinaryInput | SharedInput:
    """One of the `inputs`, a Tensor if strings or booleans came as JSON; binary data begins at offset `start`.

    Errors name `model`; `limit` bounds a JSON tensor. Raises InvalidArgumentError.
    """
    name = entry.get("name")
    datatype = entry.get("datatype")
    kind = _KINDS.get(datatype) if type(datatype) is str else None
    shape = entry.get("shape")
    if type(name) is not str or kind is None or shape is None:
        raise _incomplete(entry)
    sizes = _read_shape(shape, name)
    count = count_elements(sizes, kind.itemsize, name)
    if "parameters" in entry:
        parameters = as_object(entry["parameters"], "parameters of an input")
        _check_sources(entry, parameters, name)
        if "binary_data_size" in parameters:
            size = as_unsigned(parameters["binary_data_size"], "binary_data_size")
            _check_size(size, count, kind, name, model)
            is_view = kind.wire not in ("BYTES", "BOOL") and start % kind.itemsize == 0
            return BinaryInput(name, kind.wire, sizes, kind.dtype, count, start, size, is_view)
        if "shared_memory_region" in parameters:
            region, offset, size = read_location(parameters)
            _check_size(size, count, kind, name, model)
            return SharedInput(name, kind.wire, sizes, kind.dtype, count, region, offset, size)
    elif "data" not in entry:
        _check_sources(entry, _NO_PARAMETERS, name)
    if kind.wire in ("BYTES", "BOOL"):
        return Tensor(name, kind.wire, sizes, array_of_json(entry["data"], name, kind, sizes, count, limit))
    return NumbersInput(name, kind.wire, sizes, kind.dtype, bytes_of_json(entry["data"], name, kind, count, limit))


def read_location(parameters: Mapping[str, Any]) -> tuple[str, int, int]:
    """The region, offset and byte size in parameters that have a `shared_memory_region`."""
    return (
        as_string(parameters["shared_memory_region"], "shared_memory_region"),
        as_unsigned(parameters.get("shared_memory_offset", 0), "shared_memory_offset"),
        as_unsigned(parameters.get("shared_memory_byte_size", 0), "shared_memory_byte_size"),
    )


def _incomplete(entry: Mapping[str, Any]) -> InvalidArgumentError:
    """The error for an input whose name, datatype or shape is missing or of a wrong type."""
    name = as_string(member(entry, "name", "an input"), "name")
    tensor_type(as_string(member(entry, "datatype", f"input '{name}'"), "datatype"), f"input '{name}'")
    member(entry, "shape", f"input '{name}'")
    return InvalidArgumentError(f"Unable to parse 'shape': input '{name}' has null")


def _check_sources(entry: Mapping[str, Any], parameters: Mapping[str, Any], name: str) -> None:
    sources = ((entry, "data"), (parameters, "binary_data_size"), (parameters, "shared_memory_region"))
    present = [f"'{key}'" for holder, key in sources if key in holder]
    if len(present) != 1:
        problem = f"But {' and '.join(present)} are set" if present else "But no field is set"
        raise InvalidArgumentError(f"Input must set only one of the following fields: {_SOURCES}. {problem}: '{name}'")


def _check_size(size: int, count: int, kind: TensorType, name: str, model: str) -> None:
    if kind.itemsize and size != count * kind.itemsize:
        raise InvalidArgumentError(
            f"input byte size mismatch for input '{name}' for model '{model}'. "
            f"Expected {count * kind.itemsize}, got {size}"
        )


def _read_shape(value: Any, name: str) -> tuple[int, ...]:
    """The `shape` member of input `name`. Raises InvalidArgumentError unless it is a list of unsigned integers."""
    sizes = value if type(value) is list else as_array(value, "shape of an input")
    for size in sizes:
        if type(size) is not int or size < 0:
            raise InvalidArgumentError(
                f"Unable to parse 'shape': the sizes of input '{name}' must be integers from 0 up, got {size!r:.40}"
            )
    return tuple(sizes)
