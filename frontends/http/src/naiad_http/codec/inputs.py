"""The `inputs` of an infer request: each is JSON, bytes behind the JSON, or lies in a shared memory region."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from naiad.datatypes import TENSOR_TYPES, TensorType, tensor_type
from naiad.errors import InvalidArgumentError
from naiad.shared_memory import SharedInput
from naiad.types import Tensor
from naiad_http.codec.documents import as_object, as_string, as_unsigned, member
from naiad_http.codec.shapes import read_shape
from naiad_http.codec.tensors import array_of_json
from naiad_kit.frontends.shapes import count_elements

_SOURCES = "'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'"
_NO_PARAMETERS: Mapping[str, Any] = {}


class BinaryInput(NamedTuple):
    """An input whose `size` bytes come from `start` on in the part behind the JSON (a tuple: unpacked each request).

    `is_view` says that its array is nothing but a view on them: no BYTES, no BOOL, and aligned to its element size.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    elements: int
    start: int
    size: int
    is_view: bool


def read_input(given: Mapping[str, Any], start: int, model: str, limit: int) -> Tensor | BinaryInput | SharedInput:
    """One of the `inputs`; its bytes would begin at `start`. `model` is told in errors, `limit` bounds a JSON tensor.

    Raises InvalidArgumentError.
    """
    name = given.get("name")
    datatype = given.get("datatype")
    kind = TENSOR_TYPES.get(datatype) if type(datatype) is str else None
    shape = given.get("shape")
    if type(name) is not str or kind is None or shape is None:
        raise _nameless(given)
    sizes = read_shape(shape, name)
    count = count_elements(sizes, kind.itemsize, name)
    if "parameters" in given:
        parameters = as_object(given["parameters"], "parameters of an input")
        _check_sources(given, parameters, name)
        if "binary_data_size" in parameters:
            size = as_unsigned(parameters["binary_data_size"], "binary_data_size")
            _check_size(size, count, kind, name, model)
            is_view = kind.wire not in ("BYTES", "BOOL") and start % kind.itemsize == 0
            return BinaryInput(name, kind.wire, sizes, kind.dtype, count, start, size, is_view)
        if "shared_memory_region" in parameters:
            region, offset, size = read_place(parameters)
            _check_size(size, count, kind, name, model)
            return SharedInput(name, kind.wire, sizes, kind.dtype, count, region, offset, size)
    elif "data" not in given:
        _check_sources(given, _NO_PARAMETERS, name)
    return Tensor(name, kind.wire, sizes, array_of_json(given["data"], name, kind, sizes, count, limit))


def read_place(parameters: Mapping[str, Any]) -> tuple[str, int, int]:
    """The region, offset and byte size that parameters with a `shared_memory_region` name."""
    return (
        as_string(parameters["shared_memory_region"], "shared_memory_region"),
        as_unsigned(parameters.get("shared_memory_offset", 0), "shared_memory_offset"),
        as_unsigned(parameters.get("shared_memory_byte_size", 0), "shared_memory_byte_size"),
    )


def _nameless(given: Mapping[str, Any]) -> InvalidArgumentError:
    """What is wrong with an input that lacks its name, datatype or shape, or has something else in their place."""
    name = as_string(member(given, "name", "an input"), "name")
    tensor_type(as_string(member(given, "datatype", f"input '{name}'"), "datatype"), f"input '{name}'")
    member(given, "shape", f"input '{name}'")
    return InvalidArgumentError(f"Unable to parse 'shape': input '{name}' has null in its place")


def _check_sources(given: Mapping[str, Any], parameters: Mapping[str, Any], name: str) -> None:
    places = ((given, "data"), (parameters, "binary_data_size"), (parameters, "shared_memory_region"))
    found = [f"'{key}'" for holder, key in places if key in holder]
    if len(found) != 1:
        told = f"But {' and '.join(found)} are set" if found else "But no field is set"
        raise InvalidArgumentError(f"Input must set only one of the following fields: {_SOURCES}. {told}: '{name}'")


def _check_size(size: int, count: int, kind: TensorType, name: str, model: str) -> None:
    if kind.itemsize and size != count * kind.itemsize:
        raise InvalidArgumentError(
            f"input byte size mismatch for input '{name}' for model '{model}'. "
            f"Expected {count * kind.itemsize}, got {size}"
        )
