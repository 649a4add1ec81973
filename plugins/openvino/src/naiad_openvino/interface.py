"""What a model takes and gives, in OpenVINO's words and in ours."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from naiad.config import DataType
from naiad.interface import Interface, ModelTensor

DATA_TYPES: Mapping[str, DataType] = MappingProxyType(
    {
        "boolean": DataType.TYPE_BOOL,
        "u8": DataType.TYPE_UINT8,
        "u16": DataType.TYPE_UINT16,
        "u32": DataType.TYPE_UINT32,
        "u64": DataType.TYPE_UINT64,
        "i8": DataType.TYPE_INT8,
        "i16": DataType.TYPE_INT16,
        "i32": DataType.TYPE_INT32,
        "i64": DataType.TYPE_INT64,
        "f16": DataType.TYPE_FP16,
        "f32": DataType.TYPE_FP32,
        "f64": DataType.TYPE_FP64,
        "bf16": DataType.TYPE_BF16,
        "string": DataType.TYPE_STRING,
    }
)
"""The datatype of a configuration for each element type that has one; those of 4 bits and less have none."""


def interface_of(model: Any) -> Interface:
    """The interface of an `openvino.Model` or `CompiledModel`."""
    return Interface(tuple(map(_tensor, model.inputs)), tuple(map(_tensor, model.outputs)))


def name_of(port: Any) -> str:
    """What clients call it: the first of its names in alphabetical order, or that of its node."""
    names = sorted(port.get_names())
    return str(names[0]) if names else str(port.node.friendly_name)


def places(ports: Iterable[Any]) -> dict[str, int]:
    """The place of each input or output by each of its names."""
    found: dict[str, int] = {}
    for place, port in enumerate(ports):
        for name in (*port.get_names(), port.node.friendly_name):
            found.setdefault(str(name), place)
    return found


def _tensor(port: Any) -> ModelTensor:
    kind = port.element_type.get_type_name()
    rank = port.partial_shape.rank
    shape = () if rank.is_dynamic else tuple(dim.get_length() if dim.is_static else -1 for dim in port.partial_shape)
    return ModelTensor(name_of(port), kind, DATA_TYPES.get(kind), shape, unranked=rank.is_dynamic)
