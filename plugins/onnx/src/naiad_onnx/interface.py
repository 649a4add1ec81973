"""Interface of an ONNX model: inputs and outputs of ONNX Runtime as those of a configuration."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from naiad_config import DataType
from naiad_kit.backends.interface import Interface, ModelTensor

DATA_TYPES: Mapping[str, DataType] = MappingProxyType(
    {
        "tensor(bool)": DataType.TYPE_BOOL,
        "tensor(uint8)": DataType.TYPE_UINT8,
        "tensor(uint16)": DataType.TYPE_UINT16,
        "tensor(uint32)": DataType.TYPE_UINT32,
        "tensor(uint64)": DataType.TYPE_UINT64,
        "tensor(int8)": DataType.TYPE_INT8,
        "tensor(int16)": DataType.TYPE_INT16,
        "tensor(int32)": DataType.TYPE_INT32,
        "tensor(int64)": DataType.TYPE_INT64,
        "tensor(float16)": DataType.TYPE_FP16,
        "tensor(float)": DataType.TYPE_FP32,
        "tensor(double)": DataType.TYPE_FP64,
        "tensor(string)": DataType.TYPE_STRING,
        "tensor(bfloat16)": DataType.TYPE_BF16,
    }
)
"""The datatype of a configuration for each type of ONNX that has one; sequences, maps, 4 and 8 bit floats have none."""

_UNZIPPED = "export the model with plain tensors (scikit-learn: options={'zipmap': False})"


def interface_of(inputs: Iterable[Any], outputs: Iterable[Any], defaults: Iterable[Any]) -> Interface:
    """The interface from ONNX Runtime's `NodeArg`s; `defaults` are the initializers that a request may override."""
    optional = tuple(_tensor(default, optional=True) for default in defaults)
    return Interface(
        inputs=tuple(map(_tensor, inputs)) + optional,
        outputs=tuple(map(_tensor, outputs)),
    )


def _tensor(argument: Any, optional: bool = False) -> ModelTensor:
    kind = str(argument.type)
    if kind.startswith("optional("):
        kind, optional = kind.removeprefix("optional(").removesuffix(")"), True
    shape = tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in argument.shape)
    hint = _UNZIPPED if kind.startswith(("seq(", "map(")) else ""
    return ModelTensor(argument.name, kind, DATA_TYPES.get(kind), shape, optional, hint)
