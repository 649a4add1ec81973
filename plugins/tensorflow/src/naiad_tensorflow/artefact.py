"""Model artefact: the tensors, feeds and fetches of a model file, and the size of its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from naiad_kit.backends.interface import Interface


@dataclass(frozen=True, slots=True)
class Tensors:
    """The names of tensors in the graph (`x:0`) by the names that clients know."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


class Artefact(Protocol):
    """A model on disk. All but its weights is known without loading it; `weight_bytes` is what these take in memory."""

    interface: Interface
    tensors: Tensors
    weight_bytes: int

    def load(self, session: Any) -> None:
        """Put it into a session, whose graph is the current one. Raises InvalidArgumentError."""
        ...
