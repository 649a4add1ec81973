"""The protocol of a program: a function from positional tensors to positional tensors, for every form of model."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from naiad.backend import MemoryUsage
from naiad.errors import ModelFailedError
from naiad_torch.callspec import CallSpec
from naiad_torch.described import Described

Weight = tuple[Hashable, MemoryUsage]
"""Some memory, and what it is known by: programs that share it have the same."""


class Program(Protocol):
    """A loaded model on one device. Its methods are for any thread, and with ENABLE_WEIGHT_SHARING for several at once.

    `in_place` says that it may write to its inputs, or write later on to what it has given.
    """

    in_place: bool

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """The results, in order, for the arguments in order: a `torch.Tensor`, or a list of `str`, each.

        None stands for an argument that is left out. Raises whatever PyTorch raises, and ModelFailedError for a result
        that is nothing that a client can take.
        """
        ...

    def weights(self) -> Iterator[Weight]:
        """The memory of its weights and buffers."""
        ...


class Artefact(Protocol):
    """A model file and its interface. `inputs` and `outputs` are the indices of its tensors by their names.

    They are empty for a model without names. `input_count` and `output_count` are how many there are, `required` how
    many of the inputs must be given; None where it does not say. `keys` says that the names of inputs are keys of the
    one dict that the model takes. `path` is its file. `takes` and `gives` describe all of its tensors, in order; ()
    where it does not say.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    input_count: int | None
    output_count: int | None
    required: int
    keys: bool
    path: Path

    @property
    def takes(self) -> Sequence[Described]:
        """Its inputs."""
        ...

    @property
    def gives(self) -> Sequence[Described]:
        """Its results."""
        ...

    def open(self, device: str) -> Program:
        """Load it on a device (`cpu`, `cuda:0`, or "" where the model places itself). Raises NaiadError."""
        ...


class Packaged:
    """The names of inputs and outputs by a package's call spec; a sequence of tensors may share one name."""

    keys = False
    takes: Sequence[Described] = ()

    def __init__(
        self, spec: CallSpec, input_names: Sequence[Sequence[str]], output_names: Sequence[Sequence[str]]
    ) -> None:
        self.inputs: Mapping[str, int] = _by_name(input_names)
        self.outputs: Mapping[str, int] = _by_name(output_names)
        self.input_count: int | None = spec.input_count
        self.required = spec.input_count
        self.output_count: int | None = spec.result.size


def weights_in(module: Any) -> Iterator[Weight]:
    """The memory of the parameters and buffers of a `torch.nn.Module`."""
    for tensor in (*module.parameters(), *module.buffers()):
        kind, index = ("GPU", tensor.device.index or 0) if tensor.device.type == "cuda" else ("CPU", 0)
        storage = tensor.untyped_storage()
        yield (kind, index, storage.data_ptr()), MemoryUsage(kind, index, storage.nbytes())


def results_of(value: Any) -> list[Any]:
    """The results in what a function returned: a tensor or list of strings, or a tuple or list of these.

    Raises ModelFailedError.
    """
    if _is_result(value):
        return [value]
    if isinstance(value, tuple | list) and value and all(map(_is_result, value)):
        return list(value)
    raise ModelFailedError(
        "output must be of type Tensor, List[str] or Tuple containing one of these two types. It should not be a List "
        f"/ Dictionary of Tensors or a Scalar; it is a {type(value).__name__}"
    )


def _is_result(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(element, str) for element in value)
    return hasattr(value, "dtype") and hasattr(value, "detach")


def _by_name(names: Sequence[Sequence[str]]) -> dict[str, int]:
    return {name: index for index, each in enumerate(names) for name in each}
