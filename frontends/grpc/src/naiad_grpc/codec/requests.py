"""Decoder of ModelInferRequest messages; tensors are views on the received bytes."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_grpc.codec.costs import COSTLY_BYTES
from naiad_grpc.codec.forms import OutputForm, ResponseForm
from naiad_grpc.codec.framing import ID_TAG, RequestMessage, malformed, scan, split
from naiad_grpc.codec.inputs import Input, array_of_bytes
from naiad_grpc.codec.templates import RequestTemplate, read_message, read_template
from naiad_grpc.codec.typed_size import check_typed_size
from naiad_kit.frontends.body_memory import SMALLEST_BODY, Reserve, no_body_memory
from naiad_kit.shared_memory import SharedMemoryApi
from naiad_tensors.laid_out import LaidOutInputs
from naiad_tensors.tensors import Tensor

_MAX_CACHED = 512
_LONGEST_CACHED = 4096

LargeRequest = tuple[RequestTemplate, dict[str, Tensor]]
"""A large message that was read: its template, and its inputs without those in shared memory."""

_ExpectedMessage = tuple[bytes, bytes, RequestTemplate]
"""The likely bytes of the next request to a model before and after its id, without tensors, and their template."""


class Decoder:
    """Decodes infer requests; `shared_memory` gives the service that has the regions.

    An input that is not aligned in its message is copied into what `reserve` has for its model, where the model's
    process reads it.

    Clients repeat the same message with new ids and tensors, so its template is cached by its text. That saves most of
    the time of a small request, and so does comparing a message with the last one to the same model before parsing it.
    """

    def __init__(self, shared_memory: Callable[[], SharedMemoryApi], reserve: Reserve = no_body_memory) -> None:
        self._shared_memory = shared_memory
        self._reserve = reserve
        self._templates: dict[bytes, RequestTemplate] = {}
        self._expected: dict[bytes, _ExpectedMessage] = {}

    def decode(self, message: RequestMessage) -> tuple[Request, ResponseForm]:
        """The request in the message, and the requested form of its response.

        Raises InvalidArgumentError, NotFoundError for an unknown shared memory region, or UnsupportedError.
        """
        if type(message) is not bytes:
            return self.expected_view(message) or self._decode_any(message)
        if 1 < len(message) < SMALLEST_BODY:
            # a name longer than 127 bytes gives a key that is not the name, which works as well
            expected = self._expected.get(message[: message[1] + 2])
            if expected is not None:
                before_id, after_id, template = expected
                request = _as_expected(message, before_id, after_id, template)
                if request is not None:
                    return request, template.form
        return self._decode_any(message)

    def expected_view(self, message: RequestMessage) -> tuple[Request, ResponseForm] | None:
        """As `decode`, if the message is a view like the last one to its model, with one input; otherwise None.

        Of several inputs one at most is aligned, and others may need `reserve`.
        """
        if type(message) is bytes or len(message) < 2:
            return None
        expected = self._expected.get(bytes(message[: message[1] + 2]))
        if expected is None or len(expected[2].inputs.raw) != 1:
            return None
        before_id, after_id, template = expected
        request = _as_expected(message, before_id, after_id, template)
        return None if request is None else (request, template.form)

    def read(self, message: RequestMessage) -> LargeRequest:
        """The slow part of decoding a message that `takes_long`, for any thread. Caches nothing. Raises as `decode`."""
        text, contents = split(message)
        check_typed_size(text)
        template = read_template(text, bool(contents))
        return template, self._with_raw(template, message, contents)

    def complete(self, read: LargeRequest) -> tuple[Request, ResponseForm]:
        """The request and the form of its response, as `decode`, from the result of `read`; for the event loop."""
        template, tensors = read
        return self._complete(template, template.id, tensors)

    def _decode_any(self, message: RequestMessage) -> tuple[Request, ResponseForm]:
        layout = scan(message)
        if layout is None:
            text, contents = split(message)
            template = read_template(text, bool(contents))
            return self._complete(template, template.id, self._with_raw(template, message, contents))
        before, after = bytes(message[: layout.id_start]), bytes(message[layout.id_end : layout.contents_start])
        template = self._template(before + after, bool(layout.contents))
        request_id = _text(bytes(message[layout.text_start : layout.id_end]))
        decoded = self._complete(template, request_id, self._with_raw(template, message, layout.contents))
        if template.raw_size >= 0 and 1 < len(before) + len(after) <= _LONGEST_CACHED:
            _cache(self._expected, bytes(message[: message[1] + 2]), (before, after, template))
        return decoded

    def _template(self, text: bytes, has_raw: bool) -> RequestTemplate:
        template = self._templates.get(text)
        if template is None:
            template = read_template(text, has_raw)
            if not template.inputs.tensors and len(text) <= _LONGEST_CACHED:
                _cache(self._templates, text, template)
        return template

    def _with_raw(
        self, template: RequestTemplate, message: RequestMessage, contents: list[tuple[int, int]]
    ) -> dict[str, Tensor]:
        """The inputs from typed contents, and those whose bytes are in the message."""
        _check_contents(template, len(contents))
        tensors = template.inputs.tensors.copy()
        for each, (start, size) in zip(template.inputs.raw, contents, strict=True):
            tensors[each.name] = _tensor(each, message, start, size, template.model_name, self._reserve)
        return tensors

    def _complete(
        self, template: RequestTemplate, request_id: str, tensors: dict[str, Tensor]
    ) -> tuple[Request, ResponseForm]:
        """The request with its inputs from shared memory as they are now, and the form of its response."""
        inputs = template.inputs
        for shared in inputs.shared:
            tensors[shared.name] = self._shared_memory().tensor(shared, template.model_name)
        ordered = tensors if len(tensors) == len(inputs.raw) else {name: tensors[name] for name in inputs.names}
        request, form = _request(template, request_id, ordered), self._form(template)
        if inputs.shared or template.shared_outputs:
            targets = {name: each.target for name, each in form.outputs.items()}
            request.transfer = self._shared_memory().request_io(ordered, targets)
        return request, form

    def _form(self, template: RequestTemplate) -> ResponseForm:
        if not template.shared_outputs:
            return template.form
        outputs = dict(template.form.outputs)
        shared_memory = self._shared_memory()
        for name, (region, offset, byte_size) in template.shared_outputs:
            outputs[name] = OutputForm(target=shared_memory.output(region, offset, byte_size))
        return ResponseForm(outputs, template.form.empty_final)


def request_id_of(message: RequestMessage) -> str:
    """The id in a message that cannot be decoded, "" if it is unknown. The raw contents are not copied."""
    layout = scan(message)
    try:
        if layout is not None:
            return bytes(message[layout.text_start : layout.id_end]).decode()
        if len(message) > COSTLY_BYTES:  # the id is not worth the time
            return ""
        request_id: str = read_message(split(message)[0]).id
    except (InvalidArgumentError, UnicodeDecodeError):
        return ""
    return request_id


def _as_expected(
    message: RequestMessage, before_id: bytes, after_id: bytes, template: RequestTemplate
) -> Request | None:
    """The request if the message is as expected, otherwise None."""
    offset = len(before_id)
    if message[:offset] != before_id or offset + 1 >= len(message):  # in three quarters of the time of `startswith`
        return None
    request_id = ""
    if message[offset] == ID_TAG:
        size = message[offset + 1]
        if size > 0x7F:
            return None
        start = offset + 2
        offset = start + size
        request_id = str(message[start:offset], "utf-8", "replace")
        if "\ufffd" in request_id:  # invalid UTF-8, or this very character
            return None
    start = offset + len(after_id)
    if message[offset:start] != after_id or len(message) - start != template.raw_size:
        return None
    for begin, end, header in template.headers:
        if message[start + begin : start + end] != header:
            return None
    return _request(template, request_id, LaidOutInputs(template.layout, message, start))


def _request(template: RequestTemplate, request_id: str, tensors: Mapping[str, Tensor]) -> Request:
    parameters = template.parameters
    return Request(
        template.model_name,
        tensors,
        template.version,
        request_id,
        template.requested,
        parameters.own,
        parameters.priority,
        parameters.timeout_microseconds,
        None,
        parameters.correlation_id,
        parameters.sequence_start,
        parameters.sequence_end,
    )


def _tensor(raw: Input, message: RequestMessage, start: int, size: int, model: str, reserve: Reserve) -> Tensor:
    """The tensor over these bytes of the message; unaligned bytes are copied, since frameworks may not read them."""
    array = array_of_bytes(raw, message, start, size, model)
    if not array.flags.aligned:
        array = array_of_bytes(raw, _copied(message, start, size, model, reserve), 0, size, model)
    return Tensor(raw.name, raw.datatype, raw.shape, array)


def _copied(message: RequestMessage, start: int, size: int, model: str, reserve: Reserve) -> bytes | memoryview:
    memory = reserve(model, size) if size >= SMALLEST_BODY else None
    if memory is None:
        return bytes(message[start : start + size])
    memory[:] = memoryview(message)[start : start + size]
    return memory


def _check_contents(template: RequestTemplate, got: int) -> None:
    raw = template.inputs.raw
    if got == len(raw):
        return
    if not got:
        raise InvalidArgumentError(
            f"unable to find data for input tensor '{raw[0].name}' for model '{template.model_name}' in request."
        )
    raise InvalidArgumentError(
        f"expected {len(raw)} raw_input_contents for model '{template.model_name}', got {got}: one for each input that "
        "is not in shared memory, in the order of the inputs"
    )


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise malformed("its id is not valid UTF-8") from error


_Known = TypeVar("_Known")


def _cache(known: dict[bytes, _Known], key: bytes, value: _Known) -> None:
    if len(known) >= _MAX_CACHED and key not in known:
        del known[next(iter(known))]
    known[key] = value
