"""The JSON part of an infer request as a skeleton: all that can be known before any bytes are seen."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from naiad.buffers import Buffer
from naiad.errors import InvalidArgumentError
from naiad.shared_memory import SharedInput
from naiad.types import Tensor
from naiad_http.codec.documents import as_array, as_object, as_string, member
from naiad_http.codec.forms import AS_BINARY, AS_JSON, AnswerForm
from naiad_http.codec.inputs import BinaryInput, read_input
from naiad_http.codec.large_documents import parse_document
from naiad_http.codec.outputs import Outputs, SharedOutput, read_outputs
from naiad_http.codec.parameters import read_parameters
from naiad_kit.frontends.parameters import NO_PARAMETERS, Parameters


@dataclass(slots=True, eq=False)
class Skeleton:
    """A request without its `binary` and `shared` tensors; `size` is how many bytes the binary ones take together.

    `tensors` are those that came as JSON. A skeleton without any serves any number of requests, which is why it has
    the names of shared memory regions and no region. Nobody changes one; freezing it would cost as much as reading a
    small tensor. `names` are those of all inputs, in order; `form` leaves the `placed` outputs out.
    """

    id: str
    parameters: Parameters
    names: Collection[str]
    tensors: dict[str, Tensor]
    binary: Sequence[BinaryInput]
    shared: Sequence[SharedInput]
    requested: tuple[str, ...]
    form: AnswerForm
    placed: Sequence[SharedOutput]
    size: int


def read_skeleton(text: Buffer, model: str, limit: int) -> Skeleton:
    """The skeleton of a request's JSON; `model` is only told in errors, `limit` bounds the bytes of a JSON tensor.

    Raises InvalidArgumentError for everything that makes no sense whatever the model is.
    """
    document = as_object(parse_document(text), "request")
    parameters = NO_PARAMETERS
    if "parameters" in document:
        parameters = read_parameters(as_object(document["parameters"], "parameters"))
    given = as_array(member(document, "inputs", "the request"), "inputs")
    names, tensors, binary, shared = _read_inputs(given, model, limit)
    outputs = read_outputs(as_array(document["outputs"], "outputs")) if "outputs" in document else Outputs()
    form = AnswerForm(AS_BINARY if parameters.binary_outputs else AS_JSON, outputs.forms)
    size = binary[-1].start + binary[-1].size if binary else 0
    request_id = as_string(document.get("id", ""), "id")
    return Skeleton(request_id, parameters, names, tensors, binary, shared, outputs.names, form, outputs.shared, size)


def _read_inputs(
    given: list[Any], model: str, limit: int
) -> tuple[dict[str, None], dict[str, Tensor], list[BinaryInput], list[SharedInput]]:
    """The names of all inputs, and apart from each other those that came as JSON, as bytes, and in shared memory."""
    names: dict[str, None] = {}
    tensors: dict[str, Tensor] = {}
    binary: list[BinaryInput] = []
    shared: list[SharedInput] = []
    start = 0
    for each in given:
        found = read_input(as_object(each, "inputs"), start, model, limit)
        name = found.name
        if name in names:
            raise InvalidArgumentError(f"input '{name}' already exists in request; name each input once")
        names[name] = None
        if isinstance(found, Tensor):
            tensors[name] = found
        elif isinstance(found, BinaryInput):
            binary.append(found)
            start += found.size
        else:
            shared.append(found)
    return names, tensors, binary, shared
