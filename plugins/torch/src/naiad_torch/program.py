"""What a model of any form is to the rest of the plugin: a function from tensors in order to tensors in order."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from naiad.errors import ModelFailedError


class Program(Protocol):
    """A loaded model on one device. Its methods are for any thread, one at a time."""

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """The results, in order, for the arguments in order: a `torch.Tensor`, or a list of `str`, each.

        None stands for an argument that is left out. Raises whatever PyTorch raises, and ModelFailedError for a result
        that is nothing that a client can take.
        """
        ...

    def parameters(self) -> Sequence[Any]:
        """The tensors that it holds: weights and buffers."""
        ...


class Artefact(Protocol):
    """A model on disk, looked at. `inputs` and `outputs` are the places of its tensors by the names it knows for them.

    A model that does not know is empty there. `input_count` and `output_count` are how many there are, `required` how
    many of the inputs must be given; None where it does not say. `keys` says that the names of inputs are keys of the
    one dict that the model takes.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    input_count: int | None
    output_count: int | None
    required: int
    keys: bool

    def open(self, device: str) -> Program:
        """Load it on a device (`cpu`, `cuda:0`, or "" where the model places itself). Raises NaiadError."""
        ...


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
