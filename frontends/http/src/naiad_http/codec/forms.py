"""Requested forms of outputs: JSON, binary after the JSON or shared memory; the tensor itself or its top classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from naiad_kit.shared_memory import OutputTarget


@dataclass(frozen=True, slots=True)
class OutputForm:
    """One output: `binary` bytes after the JSON, or JSON numbers; the best `classes` of it (0: the tensor itself).

    With a `target` its bytes go there, and its JSON has only its name, datatype and shape.
    """

    binary: bool = False
    classes: int = 0
    target: OutputTarget | None = None


AS_JSON = OutputForm()
AS_BINARY = OutputForm(binary=True)


@dataclass(slots=True)
class ResponseForm:
    """The form of a response: `unlisted` is the form of every output that the request does not list.

    `all_binary`, `all_json`: every output that may be in the response is plain binary, or plain JSON.
    """

    unlisted: OutputForm = AS_JSON
    outputs: Mapping[str, OutputForm] = field(default_factory=dict)
    all_binary: bool = field(init=False, compare=False)
    all_json: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        forms = self.outputs.values() or (self.unlisted,)
        self.all_binary = all(each == AS_BINARY for each in forms)
        self.all_json = all(each == AS_JSON for each in forms)
