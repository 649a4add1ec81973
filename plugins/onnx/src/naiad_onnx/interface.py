"""What an ONNX model takes and gives, in ONNX Runtime's words and in ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from naiad.config import DataType

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


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """An input or output of a model.

    `type` is ONNX Runtime's word (`tensor(float)`). `shape` has -1 for variable dims and includes the batch dimension;
    an empty shape is a scalar or a tensor without a declared rank, which ONNX Runtime tells alike. An `optional` input
    has a default in the model or an optional type, and may be left out of a request.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    optional: bool = False

    @property
    def data_type(self) -> DataType | None:
        """Its datatype in a configuration, None when there is none."""
        return DATA_TYPES.get(self.type)


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of a model, in the order of the file."""

    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]

    @property
    def batches(self) -> bool:
        """Whether the model can be batched: it has inputs, and none of its tensors fixes the first dim."""
        return bool(self.inputs) and not self.fixed

    @property
    def fixed(self) -> tuple[ModelTensor, ...]:
        """What speaks against batching: tensors whose first dim is not variable.

        Optional inputs and outputs that are no tensors do not count; batched requests do without them.
        """
        counted = (*self.inputs, *(output for output in self.outputs if output.data_type is not None))
        return tuple(tensor for tensor in counted if tensor.shape[:1] != (-1,) and not tensor.optional)


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
    return ModelTensor(argument.name, kind, shape, optional)


def shape_text(shape: Iterable[int]) -> str:
    """A shape as messages show it: `[-1,16]`."""
    return f"[{','.join(map(str, shape))}]"
