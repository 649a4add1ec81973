"""What the caller wants of each output beside its name, and what of the end of a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from naiad.shared_memory import OutputTarget


@dataclass(frozen=True, slots=True)
class OutputForm:
    """One output: the best `classes` of it (0: the tensor itself), in the response or in shared memory at `target`."""

    classes: int = 0
    target: OutputTarget | None = None


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The whole answer: `outputs` are those that are not simply in the response.

    `empty_final` asks for the last response of a decoupled model also when it only says that it is the last.
    """

    outputs: Mapping[str, OutputForm] = field(default_factory=dict)
    empty_final: bool = False


PLAIN = AnswerForm()
"""All outputs as they are, in the response."""
