"""Templates of infer requests: what their messages say, without the raw contents."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from google.protobuf.message import DecodeError

from naiad_grpc.codec.forms import PLAIN, ResponseForm
from naiad_grpc.codec.framing import malformed
from naiad_grpc.codec.inputs import Input, Inputs, read_inputs
from naiad_grpc.codec.outputs import read_outputs
from naiad_grpc.codec.parameters import read_parameters
from naiad_grpc.codec.references import Reference
from naiad_grpc.codec.versions import model_version
from naiad_grpc.messages import message_class
from naiad_kit.frontends.parameters import Parameters
from naiad_tensors.laid_out import Field, InputLayout


@dataclass(slots=True, eq=False)
class RequestTemplate:
    """A request without its raw contents and without its tensors in shared memory.

    A template without typed contents serves any number of requests. Templates are not changed; the dataclass is not
    frozen because that costs as much as reading a small tensor. `form` lacks the `shared_outputs`. `raw_size` is the
    size of the raw contents in the message if the request needs only views on them, otherwise -1. `layout` has the
    position of each in the raw contents, and `headers` the beginning, the end and the bytes of the header of each.
    """

    model_name: str
    version: int
    id: str
    parameters: Parameters
    inputs: Inputs
    requested: tuple[str, ...]
    form: ResponseForm
    shared_outputs: Sequence[tuple[str, Reference]]
    raw_size: int
    headers: tuple[tuple[int, int, bytes], ...]
    layout: InputLayout


def read_message(text: bytes) -> Any:
    """The ModelInferRequest in these bytes. Raises InvalidArgumentError."""
    try:
        return message_class("ModelInferRequest").FromString(text)
    except DecodeError as error:
        raise malformed(str(error)) from error


def read_template(text: bytes, has_raw: bool) -> RequestTemplate:
    """The template of a message without its raw contents; `has_raw` says whether it had any.

    Raises InvalidArgumentError for what is invalid for every model.
    """
    message = read_message(text)
    parameters = read_parameters(message.parameters)
    inputs = read_inputs(message.inputs, message.model_name, has_raw)
    requested, forms, shared_outputs = read_outputs(message.outputs)
    is_plain = not (inputs.tensors or inputs.shared or shared_outputs) and all(each.is_plain for each in inputs.raw)
    *starts, raw_size = accumulate((each.header_size + each.size for each in inputs.raw), initial=0)
    located = list(zip(inputs.raw, starts, strict=True))
    return RequestTemplate(
        model_name=message.model_name,
        version=model_version(message.model_version),
        id=message.id,
        parameters=parameters,
        inputs=inputs,
        requested=requested,
        form=ResponseForm(forms, parameters.empty_final) if forms or parameters.empty_final else PLAIN,
        shared_outputs=shared_outputs,
        raw_size=raw_size if is_plain else -1,
        headers=tuple((start, start + each.header_size, each.header) for each, start in located),
        layout=InputLayout([_field(each, start) for each, start in located] if is_plain else ()),
    )


def _field(raw: Input, start: int) -> Field:
    return Field(raw.name, raw.datatype, raw.shape, raw.dtype, start + raw.header_size, raw.size)
