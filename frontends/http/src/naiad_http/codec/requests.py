"""Decoder of infer requests; tensors are views on the received bytes, or copies of shared memory."""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_http.codec.forms import OutputForm, ResponseForm
from naiad_http.codec.inputs import BinaryInput
from naiad_http.codec.raw import raw_request, takes_long
from naiad_http.codec.request_head import RequestHead
from naiad_http.codec.template_cache import IdentifiedTemplate, TemplateCache
from naiad_http.codec.templates import LONGEST, RequestTemplate, read_template
from naiad_kit.buffers import Buffer, bool_array, unpack_strings
from naiad_kit.shared_memory import SharedMemoryApi
from naiad_tensors.laid_out import LaidOutInputs
from naiad_tensors.tensors import Tensor

_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs
_LONG_RAW = 1 << 20
"""Raw requests up to this size are decoded on the event loop: the copy takes less time than a thread."""

LARGE_BYTES = 65536
"""Up to this size JSON, strings and copies take a millisecond or two, and are decoded on the event loop."""

_BYTES_OF_JSON = 8
"""Memory of a byte of JSON as Python values: a number of 4 letters and a comma takes 40 bytes."""

_BYTES_OF_STRING = 56
"""Memory of a string beside its own bytes: an object, and its pointers in a list and in an array."""

_SHARED = b'"shared_memory_region"'

LargeRequest = tuple[RequestTemplate, Mapping[str, Tensor]]
"""A large body that was read: its template, and its inputs without those in shared memory."""


class Decoder:
    """Decodes the bodies of infer requests.

    Clients repeat the same JSON with new binary tensors, or with the same region of shared memory, so its template is
    cached by its text (without ids), which saves two thirds of the time of a small request. JSON that carries tensors
    is not cached.
    """

    def __init__(
        self,
        max_input_size: int,
        model_config: Callable[[str, int], ModelConfig],
        shared_memory: Callable[[], SharedMemoryApi],
    ) -> None:
        """`shared_memory` gives the service that has the regions; `model_config` is called for raw requests only."""
        self._limit = max_input_size
        self._model_config = model_config
        self._shared_memory = shared_memory
        self._templates = TemplateCache(lambda text, model: read_template(text, model, max_input_size))

    def decode(self, request_head: RequestHead, front: Buffer, rest: Buffer) -> tuple[Request, ResponseForm]:
        """The request in the body and the requested form of its response.

        `front` is the JSON part (`bytes`; without a header length the whole body), `rest` the bytes after it.
        Raises InvalidArgumentError, or what `model_config` and `shared_memory` raise.
        """
        length = request_head.header_length
        if length is None:
            template, request_id, correlation_id = self._whole_body(front, request_head.model_name)
        elif length == 0:
            return raw_request(request_head, self._model_config(request_head.model_name, request_head.version), rest)
        elif length != len(front):
            raise _wrong_header_length(length, len(front) + len(rest))
        else:
            template, request_id, correlation_id = self._templates.find(bytes(front), request_head.model_name)
        if template.size != len(rest):
            raise _wrong_size(template, len(rest), request_head.model_name)
        inputs = _with_binary(template, rest, request_head.model_name) if template.binary else template.tensors
        return self._complete(request_head, template, request_id, correlation_id, inputs)

    def is_large(self, request_head: RequestHead, front: Buffer, rest: Buffer) -> bool:
        """Whether decoding may take milliseconds and belongs on a thread.

        That is `decode` for a raw request, `read` and then `complete` for others. Tensors that are views on `rest` cost
        nothing, however large they are. Raises what `decode` raises.
        """
        if len(front) > LARGE_BYTES:
            return True
        length = request_head.header_length
        if len(rest) <= LARGE_BYTES or length != len(front):
            return False
        if length == 0:
            config = self._model_config
            return len(rest) > _LONG_RAW and takes_long(config(request_head.model_name, request_head.version))
        template = self._templates.find(bytes(front), request_head.model_name)[0]
        return not all(each.is_view for each in template.binary)

    def decoded_bytes(self, request_head: RequestHead, front: Buffer, rest: Buffer) -> int:
        """An estimate of the bytes that decoding takes beside those of the body. Raises InvalidArgumentError."""
        if len(front) > LARGE_BYTES:
            return _BYTES_OF_JSON * len(front)
        if request_head.header_length == 0:
            return len(rest)
        template = self._templates.find(bytes(front), request_head.model_name)[0]
        return sum(each.size + _BYTES_OF_STRING * each.elements for each in template.binary if each.datatype == "BYTES")

    def read(self, request_head: RequestHead, front: Buffer, rest: Buffer) -> "LargeRequest":
        """The slow part of decoding a large body, for any thread: JSON, strings and copies.

        Raises InvalidArgumentError; an input of BYTES with more elements than the model can take is not unpacked.
        """
        model = request_head.model_name
        if request_head.header_length is not None and request_head.header_length != len(front):
            raise _wrong_header_length(request_head.header_length, len(front) + len(rest))
        template = read_template(front, model, self._limit)
        if template.size != len(rest):
            raise _wrong_size(template, len(rest), model)
        _check_strings(template, self._model_config(model, request_head.version))
        return template, _with_binary(template, rest, model) if template.binary else template.tensors

    def complete(self, request_head: RequestHead, read: "LargeRequest") -> tuple[Request, ResponseForm]:
        """The request and the form of its response, as `decode`, from the result of `read`; for the event loop."""
        template, inputs = read
        return self._complete(request_head, template, template.id, template.parameters.correlation_id, inputs)

    def _whole_body(self, body: Buffer, model: str) -> IdentifiedTemplate:
        """The template of a body that is all JSON; only one that names shared memory is worth caching."""
        if len(body) <= LONGEST:
            body = bytes(body)
            if body.find(_SHARED) >= 0:  # `in` raises and drops an exception before it searches: 0.2 µs
                return self._templates.find(body, model)
        template = read_template(body, model, self._limit)
        return template, template.id, template.parameters.correlation_id

    def _complete(
        self,
        request_head: RequestHead,
        template: RequestTemplate,
        request_id: str,
        correlation_id: int | str,
        inputs: Mapping[str, Tensor],
    ) -> tuple[Request, ResponseForm]:
        """The request with its inputs from shared memory as they are now, and the form of its response."""
        if template.shared:
            inputs = self._with_shared(template, inputs, request_head.model_name)
        form = self._form(template) if template.shared_outputs else template.form
        request = _request(request_head, template, request_id, correlation_id, inputs)
        if template.shared_outputs or template.shared:
            targets = {name: each.target for name, each in form.outputs.items()}
            request.transfer = self._shared_memory().request_io(inputs, targets)
        return request, form

    def _with_shared(self, template: RequestTemplate, inputs: Mapping[str, Tensor], model: str) -> dict[str, Tensor]:
        every = dict(inputs)
        shared_memory = self._shared_memory()
        for each in template.shared:
            every[each.name] = shared_memory.tensor(each, model)
        return {name: every[name] for name in template.names} if inputs else every

    def _form(self, template: RequestTemplate) -> ResponseForm:
        """The form of the answer, with the regions as they are now; the outputs must lie within them."""
        forms = dict(template.form.outputs)
        shared_memory = self._shared_memory()
        for name, region, offset, byte_size in template.shared_outputs:
            forms[name] = OutputForm(target=shared_memory.output(region, offset, byte_size))
        return ResponseForm(template.form.unlisted, forms)


def _request(
    request_head: RequestHead,
    template: RequestTemplate,
    request_id: str,
    correlation_id: int | str,
    inputs: Mapping[str, Tensor],
) -> Request:
    parameters = template.parameters
    own = parameters.own
    if request_head.forwarded:  # a gateway's header overrides the caller's parameter
        own = {**own, **request_head.forwarded}
    return Request(
        request_head.model_name,
        inputs,
        request_head.version,
        request_id,
        template.requested,
        own,
        parameters.priority,
        parameters.timeout_microseconds,
        None,
        correlation_id,
        parameters.sequence_start,
        parameters.sequence_end,
    )


def _with_binary(template: RequestTemplate, rest: Buffer, model: str) -> Mapping[str, Tensor]:
    """The JSON inputs and the binary inputs, whose bytes are in `rest`."""
    layout = template.layout
    if layout.fields:
        return LaidOutInputs(layout, rest)
    inputs = dict(template.tensors)
    for each in template.binary:
        name, shape, start = each.name, each.shape, each.start
        array = _ndarray(shape, each.dtype, rest, start) if each.is_view else _array(each, rest, start, model)
        inputs[name] = Tensor(name, each.datatype, shape, array)
    if template.tensors or template.shared:
        return {name: inputs[name] for name in template.names if name in inputs}
    return LaidOutInputs(layout, rest, 0, inputs)


def _array(binary: BinaryInput, content: Buffer, start: int, model: str) -> np.ndarray:
    """The array of an input that cannot be a view; unaligned numbers are copied, since frameworks may not read them."""
    if binary.datatype == "BYTES":
        elements = unpack_strings(content[start : start + binary.size], binary.elements, binary.name, model)
        return elements.reshape(binary.shape)
    if binary.datatype == "BOOL":
        return bool_array(binary.shape, content, start)
    return np.ndarray(binary.shape, binary.dtype, content, start).copy()


def _check_strings(template: RequestTemplate, config: ModelConfig) -> None:
    """Raise InvalidArgumentError, before unpacking, for more strings than the inputs of the model can have."""
    declared = {each.name: each for each in config.input}
    for binary in template.binary:
        if binary.datatype == "BYTES" and binary.name in declared:
            dims = declared[binary.name].dims
            most = prod(dims) * max(1, config.max_batch_size)
            if -1 not in dims and binary.elements > most:
                raise InvalidArgumentError(
                    f"input '{binary.name}' has {binary.elements} strings, but model '{config.name}' takes at most "
                    f"{most}"
                )


def _wrong_header_length(length: int, total: int) -> InvalidArgumentError:
    return InvalidArgumentError(f"inference header size should be in range (0, {total}), got: {length}")


def _wrong_size(template: RequestTemplate, got: int, model: str) -> InvalidArgumentError:
    if got > template.size:
        return InvalidArgumentError(
            f"unexpected additional input data for model '{model}': the inputs take {template.size} bytes behind the "
            f"JSON, the body has {got}"
        )
    short = next(each for each in template.binary if each.start + each.size > got)
    return InvalidArgumentError(
        f"unexpected size for input '{short.name}', expecting {short.start + short.size - got} additional bytes for "
        f"model '{model}'"
    )
