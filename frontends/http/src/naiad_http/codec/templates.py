"""Templates of infer requests: what their JSON part says, without the bytes of binary and shared tensors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_http.codec.documents import as_array, as_object, as_string
from naiad_http.codec.forms import AS_BINARY, AS_JSON, ResponseForm
from naiad_http.codec.inputs import BinaryInput, NumbersInput, read_input
from naiad_http.codec.large_documents import parse_document
from naiad_http.codec.outputs import Outputs, SharedOutput, read_outputs
from naiad_http.codec.parameters import read_parameters
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.parameters import NO_PARAMETERS, Parameters
from naiad_kit.shared_memory import SharedInput
from naiad_tensors.datatypes import tensor_type
from naiad_tensors.laid_out import Field, InputLayout, LaidOutInputs
from naiad_tensors.tensors import Tensor

_NO_INPUTS = (
    "Unable to parse 'inputs': the request has no member 'inputs'; it is a list of objects with name, datatype, shape "
    'and data. generate takes the inputs by name, as {"a": [1, 2]}'
)
_ALL_OUTPUTS = Outputs()
_ALL_AS_JSON = ResponseForm(AS_JSON)
_NO_BINARY = InputLayout()

LONGEST = 4096
"""Templates of longer texts are not cached."""


@dataclass(slots=True, eq=False)
class RequestTemplate:
    """A request without its `binary` and `shared` tensors; `size` is the sum of the binary tensors in bytes.

    `tensors` came as JSON. A template without any serves any number of requests, so it names shared memory regions
    and holds none. Templates are not changed; the dataclass is not frozen because that costs as much as reading a
    small tensor. `names` are those of all inputs, in order; `form` has the outputs without those in `shared_outputs`,
    which go to shared memory. `layout` is that of the `binary` tensors; it has fields if all inputs are views.
    """

    id: str
    parameters: Parameters
    names: Collection[str]
    tensors: Mapping[str, Tensor]
    binary: Sequence[BinaryInput]
    shared: Sequence[SharedInput]
    requested: tuple[str, ...]
    form: ResponseForm
    shared_outputs: Sequence[SharedOutput]
    size: int
    layout: InputLayout


def read_template(text: Buffer, model: str, limit: int) -> RequestTemplate:
    """The template of a request's JSON; errors name `model`, and `limit` bounds the bytes of a JSON tensor.

    Raises InvalidArgumentError for a request that is invalid whatever the model.
    """
    document = parse_document(text)
    if type(document) is not dict:
        document = as_object(document, "request")
    parameters = NO_PARAMETERS
    if "parameters" in document:
        parameters = read_parameters(as_object(document["parameters"], "parameters"))
    inputs = document.get("inputs")
    if type(inputs) is not list:
        if inputs is None and "inputs" not in document:
            raise InvalidArgumentError(_NO_INPUTS)
        inputs = as_array(inputs, "inputs")
    names, tensors, binary, shared = _read_inputs(inputs, model, limit, len(text) <= LONGEST)
    outputs = read_outputs(as_array(document["outputs"], "outputs")) if "outputs" in document else _ALL_OUTPUTS
    form = _ALL_AS_JSON
    if outputs.forms or parameters.binary_outputs:
        form = ResponseForm(AS_BINARY if parameters.binary_outputs else AS_JSON, outputs.forms)
    size = binary[-1].start + binary[-1].size if binary else 0
    request_id = as_string(document["id"], "id") if "id" in document else ""
    layout = _NO_BINARY
    if binary:
        layout = InputLayout(() if tensors or shared else _fields(binary))
    return RequestTemplate(
        request_id, parameters, names, tensors, binary, shared, outputs.names, form, outputs.shared, size, layout
    )


def _fields(binary: Sequence[BinaryInput]) -> list[Field]:
    """The fields of these inputs, none unless all are views."""
    fields = [Field(each.name, each.datatype, each.shape, each.dtype, each.start, each.size) for each in binary]
    return fields if all(each.is_view for each in binary) else []


def _read_inputs(
    inputs: list[Any], model: str, limit: int, is_short: bool
) -> tuple[dict[str, None], Mapping[str, Tensor], list[BinaryInput], list[SharedInput]]:
    """The names of all inputs, then the JSON tensors, the binary inputs and the inputs in shared memory."""
    names: dict[str, None] = {}
    numbers: list[NumbersInput] = []
    tensors: dict[str, Tensor] = {}
    binary: list[BinaryInput] = []
    shared: list[SharedInput] = []
    start = 0
    for each in inputs:
        read = read_input(each if type(each) is dict else as_object(each, "inputs"), start, model, limit)
        name = read.name
        if name in names:
            raise InvalidArgumentError(f"input '{name}' already exists in request; name each input once")
        names[name] = None
        if isinstance(read, NumbersInput):
            numbers.append(read)
        elif isinstance(read, BinaryInput):
            binary.append(read)
            start += read.size
        elif isinstance(read, SharedInput):
            shared.append(read)
        else:
            tensors[name] = read
    if is_short and len(numbers) == len(names):
        return names, _laid_out(numbers), binary, shared
    tensors.update((each.name, each.tensor()) for each in numbers)
    return names, {name: tensors[name] for name in names if name in tensors}, binary, shared


def _laid_out(numbers: list[NumbersInput]) -> LaidOutInputs:
    layout = _layout_of_numbers(tuple([each[:3] for each in numbers]))
    return LaidOutInputs(layout, b"".join([each.content for each in numbers]))


@lru_cache(maxsize=512)
def _layout_of_numbers(inputs: tuple[tuple[str, str, tuple[int, ...]], ...]) -> InputLayout:
    """The layout of inputs of these names, datatypes and shapes, one behind the other."""
    fields: list[Field] = []
    start = 0
    for name, datatype, shape in inputs:
        dtype = tensor_type(datatype).dtype
        fields.append(Field(name, datatype, shape, dtype, start, dtype.itemsize * prod(shape)))
        start += fields[-1].size
    return InputLayout(fields)
