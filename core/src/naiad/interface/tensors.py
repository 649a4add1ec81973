"""What a model takes and gives, as its file tells: the form in which a framework's plugin describes it."""

from collections.abc import Iterable
from dataclasses import dataclass

from naiad.config import DataType


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """An input or output of a model.

    `type` is the framework's word for its type, and `data_type` the datatype of configurations for it, None when there
    is none. `shape` has -1 for variable dims and includes the batch dimension; an empty shape is a scalar or a tensor
    without a declared rank. An `optional` input may be left out of a request. `hint` says what to do about a type that
    has no datatype.
    """

    name: str
    type: str
    data_type: DataType | None
    shape: tuple[int, ...]
    optional: bool = False
    hint: str = ""


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


def shape_text(shape: Iterable[int]) -> str:
    """A shape as messages show it: `[-1,16]`."""
    return f"[{','.join(map(str, shape))}]"
