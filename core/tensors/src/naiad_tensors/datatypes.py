"""The tensor datatypes of the protocol, with their names in a configuration, their numpy dtypes and their sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from naiad_config.errors import InvalidArgumentError
from naiad_config.tensors import DataType


@dataclass(frozen=True, slots=True)
class TensorType:
    """One datatype: its `wire` name (`FP32`), its `config` enum (`TYPE_FP32`), bytes an element, and its numpy dtype.

    `itemsize` is 0 for BYTES, whose elements have lengths of their own; its arrays are object arrays of `bytes`.
    numpy has no bfloat16: a BF16 array is `uint16` and holds the upper half of each float32's bits.
    """

    wire: str
    config: DataType
    itemsize: int
    dtype: np.dtype


def _table() -> Mapping[str, TensorType]:
    numpy_names = {"BYTES": "object", "BF16": "uint16", "FP16": "float16", "FP32": "float32", "FP64": "float64"}
    table = {}
    for config in DataType:
        if config is DataType.TYPE_INVALID:
            continue
        wire = "BYTES" if config is DataType.TYPE_STRING else config.name.removeprefix("TYPE_")
        dtype = np.dtype(numpy_names.get(wire, wire.lower()))
        table[wire] = TensorType(wire, config, 0 if wire == "BYTES" else dtype.itemsize, dtype)
    return MappingProxyType(table)


TENSOR_TYPES: Mapping[str, TensorType] = _table()
_BY_CONFIG = {kind.config: kind for kind in TENSOR_TYPES.values()}
_BY_NUMPY = {kind.dtype: kind.wire for kind in TENSOR_TYPES.values() if kind.wire not in ("BYTES", "BF16")}


def wire_name(config: DataType) -> str:
    """The wire name of a configuration's datatype: `FP32` for `TYPE_FP32`, `BYTES` for `TYPE_STRING`."""
    return _BY_CONFIG[config].wire


def tensor_type(wire: str, owner: str = "") -> TensorType:
    """The datatype of that wire name. Raises InvalidArgumentError, which names `owner` and all datatypes."""
    try:
        return TENSOR_TYPES[wire]
    except KeyError:
        known = ", ".join(sorted(TENSOR_TYPES))
        owned = f" of {owner}" if owner else ""
        raise InvalidArgumentError(f"unknown datatype '{wire:.40}'{owned}; the datatypes are {known}") from None


def wire_name_of(dtype: np.dtype) -> str:
    """The wire name for arrays of `dtype`; `O`, `S` and `U` arrays are BYTES, `bfloat16` of ml_dtypes is BF16.

    Raises InvalidArgumentError for a dtype that the protocol cannot carry (complex, datetime, structured).
    """
    wire = _BY_NUMPY.get(dtype)
    if wire is not None:
        return wire
    if dtype.kind in "OSU":
        return "BYTES"
    if dtype.name == "bfloat16":
        return "BF16"
    native = dtype.newbyteorder("=")
    if native in _BY_NUMPY:
        return _BY_NUMPY[native]
    raise InvalidArgumentError(
        f"arrays of dtype '{dtype}' have no datatype in the protocol; convert to one of {', '.join(TENSOR_TYPES)}"
    )


def bf16_to_fp32(bits: np.ndarray) -> np.ndarray:
    """The float32 values, same shape, of BF16 bits: the upper halves of float32 bits as `uint16` (exact)."""
    bits = np.asarray(bits, dtype=np.uint16)
    return (bits.ravel().astype(np.uint32) << 16).view(np.float32).reshape(bits.shape)


def fp32_to_bf16(values: np.ndarray) -> np.ndarray:
    """BF16 bits (`uint16`, same shape) of float32 values, rounded to nearest even as IEEE 754 rounds; NaN stays NaN."""
    values = np.asarray(values, dtype=np.float32)
    bits = values.ravel().view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values.ravel()), (bits >> 16) | 0x40, rounded).astype(np.uint16).reshape(values.shape)


def is_text(value: object) -> bool:
    """Whether it is a string that UTF-8 can carry, one without halves of surrogate pairs."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
