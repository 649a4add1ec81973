"""Datatype names, BYTES tensors as raw bytes, and lookups in a configuration's dict for TritonPythonModels."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from naiad_config import DataType
from naiad_custom.triton.errors import TritonModelException
from naiad_tensors.datatypes import TENSOR_TYPES

_LENGTH = struct.Struct("<I")
_NUMPY = {kind.config: kind.dtype.type for kind in TENSOR_TYPES.values() if kind.wire != "BF16"}


TRITON_STRING_TO_NUMPY: Mapping[str, Any] = {
    config.name: bool if config is DataType.TYPE_BOOL else numpy for config, numpy in _NUMPY.items()
}
"""The types of numpy by the names of datatypes; those that numpy has none for are missing."""


def triton_string_to_numpy(triton_type_string: str) -> Any:
    """The numpy type of `TYPE_FP32` and the like. Raises KeyError for a name that numpy has no type for."""
    if triton_type_string not in TRITON_STRING_TO_NUMPY:
        known = ", ".join(TRITON_STRING_TO_NUMPY)
        raise KeyError(f"'{triton_type_string}' has no numpy type; those that have one are {known}")
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type: int) -> type[np.generic] | None:
    """The numpy type of a datatype's number, None when it has none."""
    return next((numpy for config, numpy in _NUMPY.items() if config == data_type), None)


def numpy_to_triton_type(data_type: Any) -> int | None:
    """The number of the datatype of a numpy type or dtype, None if the protocol has no such datatype."""
    if data_type is None:
        return None
    kind = np.dtype(data_type)
    if kind.kind in "SU":
        return int(DataType.TYPE_STRING)
    return next((int(config) for config, numpy in _NUMPY.items() if kind == np.dtype(numpy)), None)


def serialize_byte_tensor(input_tensor: np.ndarray) -> bytes | tuple[()] | None:
    """The elements in C order, each after its length as a little-endian uint32.

    As in Triton, () for no elements, and None for an array of anything but objects or bytes.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    elements = [each if isinstance(each, bytes) else str(each).encode() for each in input_tensor.ravel().tolist()]
    return b"".join(_LENGTH.pack(len(each)) + each for each in elements)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> np.ndarray:
    """A one-dimensional object array of `bytes`. Raises TritonModelException for lengths that pass the end."""
    elements = []
    offset = 0
    while offset < len(encoded_tensor):
        end = offset + _LENGTH.size
        if end > len(encoded_tensor):
            raise TritonModelException(f"the length at byte {offset} of a BYTES tensor is cut off")
        (length,) = _LENGTH.unpack_from(encoded_tensor, offset)
        if end + length > len(encoded_tensor):
            raise TritonModelException(f"the element at byte {offset} of a BYTES tensor passes its end")
        elements.append(bytes(encoded_tensor[end : end + length]))
        offset = end + length
    objects = np.empty(len(elements), dtype=object)
    objects[:] = elements
    return objects


def get_input_config_by_name(model_config: Mapping[str, Any], name: str) -> Any:
    """The properties of that input in a configuration's dict, None when it has none."""
    return _named(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: Mapping[str, Any], name: str) -> Any:
    """The properties of that output in a configuration's dict, None when it has none."""
    return _named(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config: Mapping[str, Any]) -> bool:
    """Whether the configuration allows any number of responses to a request."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def _named(tensors: Sequence[Any], name: str) -> Any:
    return next((tensor for tensor in tensors if tensor["name"] == name), None)
