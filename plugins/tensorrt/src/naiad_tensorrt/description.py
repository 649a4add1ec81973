"""Engine description: tensors, formats and profiles of an engine as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass

from naiad_config import DataType

Shape = tuple[int, ...]
LINEAR = "LINEAR"
"""TensorRT's word for elements that lie one after the other in the order of the dims."""

Range = tuple[Shape, Shape, Shape]
"""The least, the best and the greatest of something."""


@dataclass(frozen=True, slots=True)
class EngineTensor:
    """An input or output of an engine.

    `type` is TensorRT's word for its type and `datatype` that of configurations, None where there is none. `dims` are
    those of the whole tensor, -1 where they vary. The values of a shape tensor decide the shapes of others; one that
    is `on_host` is read and written by the CPU. A tensor whose `format` is not LINEAR may have `components` elements
    side by side along `vectorized_dim` (-1 for none); `format` is TensorRT's word for it.
    """

    name: str
    is_input: bool
    type: str
    datatype: DataType | None
    dims: Shape
    is_shape_tensor: bool = False
    on_host: bool = False
    format: str = LINEAR
    vectorized_dim: int = -1
    components: int = 1

    @property
    def is_linear(self) -> bool:
        """Whether its elements lie one after the other in the order of its dims."""
        return self.format in (LINEAR, "DLA_LINEAR")


@dataclass(frozen=True, slots=True)
class Profile:
    """One optimisation profile: the range of whole shapes of each input, and the range of values of shape tensors.

    Inputs of fixed shape have that shape three times. `values` are flat; only inputs that are shape tensors have some.
    """

    index: int
    shapes: Mapping[str, Range]
    values: Mapping[str, Range]


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """An engine: its inputs and outputs in the order of the file, and its optimisation profiles."""

    tensors: tuple[EngineTensor, ...]
    profiles: tuple[Profile, ...]

    @property
    def inputs(self) -> tuple[EngineTensor, ...]:
        """The inputs in order."""
        return tuple(tensor for tensor in self.tensors if tensor.is_input)

    @property
    def outputs(self) -> tuple[EngineTensor, ...]:
        """The outputs in order."""
        return tuple(tensor for tensor in self.tensors if not tensor.is_input)
