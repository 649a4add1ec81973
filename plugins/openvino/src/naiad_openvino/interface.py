"""The interface of a model: inputs and outputs of OpenVINO as those of a configuration."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from naiad_config import DataType, ModelConfig
from naiad_kit.backends.interface import Interface, ModelTensor, reserved_inputs, wanted_outputs

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


def interface_of(model: Any, config: ModelConfig) -> Interface:
    """The interface of an `openvino.Model`, its tensors called as the configuration calls them where it does."""
    written = frozenset([*(each.name for each in config.input), *reserved_inputs(config), *wanted_outputs(config)])
    return Interface(
        tuple(_tensor(port, written) for port in model.inputs), tuple(_tensor(port, written) for port in model.outputs)
    )


def fixed_batch(model: Any) -> int:
    """The first dim where every input has the same fixed one, else 0."""
    sizes = {_first_dim(port) for port in model.inputs}
    return sizes.pop() if len(sizes) == 1 else 0


def batching_interface(model: Any, config: ModelConfig) -> Interface:
    """The interface, with a first dim that varies where the configuration batches and that of every input is fixed.

    Padding makes it so, or there are whole batches only.
    """
    interface = interface_of(model, config)
    if config.max_batch_size < 1 or not fixed_batch(model):
        return interface
    return Interface(tuple(map(_opened, interface.inputs)), tuple(map(_opened, interface.outputs)))


def port_indices(ports: Iterable[Any]) -> dict[str, int]:
    """The place of each input or output by each of its names."""
    indices: dict[str, int] = {}
    for index, port in enumerate(ports):
        for name in _names(port):
            indices.setdefault(name, index)
    return indices


def weight_bytes(model: Any) -> int:
    """The bytes of a model's constants, in the types that its file has."""
    constants = (node for node in model.get_ordered_ops() if node.get_type_name() == "Constant")
    return sum(int(node.output(0).get_tensor().size) for node in constants)


def _names(port: Any) -> list[str]:
    """All names of a tensor: its own in alphabetical order, then that of its node."""
    return [*sorted(map(str, port.get_names())), str(port.node.friendly_name)]


def _opened(tensor: ModelTensor) -> ModelTensor:
    return replace(tensor, shape=(-1, *tensor.shape[1:])) if tensor.shape else tensor


def _first_dim(port: Any) -> int:
    shape = port.partial_shape
    known = shape.rank.is_static and shape.rank.get_length() > 0 and shape[0].is_static
    return int(shape[0].get_length()) if known else 0


def _tensor(port: Any, written: frozenset[str]) -> ModelTensor:
    names, kind = _names(port), port.element_type.get_type_name()
    name = next((each for each in names if each in written), names[0])
    rank = port.partial_shape.rank
    shape = () if rank.is_dynamic else tuple(dim.get_length() if dim.is_static else -1 for dim in port.partial_shape)
    return ModelTensor(name, kind, DATA_TYPES.get(kind), shape, unranked=rank.is_dynamic)
