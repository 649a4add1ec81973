"""How the caller wants each output written: as JSON or as bytes after it, whole or as its best classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OutputForm:
    """One output: `binary` bytes after the JSON, or JSON numbers; the best `classes` of it (0: the tensor itself)."""

    binary: bool = False
    classes: int = 0


AS_JSON = OutputForm()
AS_BINARY = OutputForm(binary=True)


@dataclass(slots=True)
class AnswerForm:
    """The whole answer: `unlisted` is the form of every output that the request does not list."""

    unlisted: OutputForm = AS_JSON
    outputs: Mapping[str, OutputForm] = field(default_factory=dict)
