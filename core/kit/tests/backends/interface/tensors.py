"""Tensors of models for tests, in the words of a framework."""

from naiad_config import DataType
from naiad_kit.backends.interface import ModelTensor

_DATA_TYPES = {"tensor(float)": DataType.TYPE_FP32, "tensor(int64)": DataType.TYPE_INT64}


def tensor_of(name: str, kind: str, shape: tuple[int, ...], optional: bool = False) -> ModelTensor:
    """A tensor of that type; one that is no tensor comes with the hint to export it as one."""
    return ModelTensor(name, kind, _DATA_TYPES.get(kind), shape, optional, "" if kind in _DATA_TYPES else "zipmap")
