"""Requested forms of outputs and of the end of a response stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from naiad_kit.shared_memory import OutputTarget


@dataclass(frozen=True, slots=True)
class OutputForm:
    """One output: the best `classes` of it (0: the tensor itself), in the response or in shared memory at `target`."""

    classes: int = 0
    target: OutputTarget | None = None


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """The form of a response: `outputs` has the outputs that are not returned as plain tensors.

    `empty_final` requests the final response of a decoupled model even if it is empty.
    """

    outputs: Mapping[str, OutputForm] = field(default_factory=dict)
    empty_final: bool = False


PLAIN = ResponseForm()
"""All outputs as plain tensors in the response."""
