"""Interface of a model as its file describes it: the tensors that a framework's plugin reads from it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from naiad_config import DataType


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """An input or output of a model.

    `type` is the framework's word for its type, and `data_type` the datatype of configurations for it, None when there
    is none. `shape` has -1 for variable dims and includes the batch dimension; an empty shape is a scalar or a tensor
    without a declared rank, which `unranked` tells apart where the framework does. An `optional` input may be left out
    of a request. `hint` says what to do about a type that has no datatype.
    """

    name: str
    type: str
    data_type: DataType | None
    shape: tuple[int, ...]
    optional: bool = False
    hint: str = ""
    unranked: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of a model, in the order of the file."""

    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]

    @property
    def batches(self) -> bool:
        """Whether the model says that it can be batched: it has inputs, and the first dim of every tensor varies."""
        return bool(self.inputs) and not self.fixed and not any(tensor.unranked for tensor in self._counted)

    @property
    def fixed(self) -> tuple[ModelTensor, ...]:
        """What speaks against batching: tensors whose first dim is not variable.

        Optional inputs and outputs that are no tensors do not count; batched requests do without them.
        """
        return tuple(tensor for tensor in self._counted if tensor.shape[:1] != (-1,) and not tensor.unranked)

    @property
    def _counted(self) -> Iterator[ModelTensor]:
        yield from (tensor for tensor in self.inputs if not tensor.optional)
        yield from (tensor for tensor in self.outputs if tensor.data_type is not None and not tensor.optional)


def shape_text(shape: Iterable[int]) -> str:
    """A shape as messages show it: `[-1,16]`."""
    return f"[{','.join(map(str, shape))}]"
