"""The bytes of a ModelInferRequest to a Request; tensors are views on the received bytes."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad.shared_memory import SharedMemoryApi
from naiad.types import Request, Tensor
from naiad_grpc.codec.costs import COSTLY_BYTES
from naiad_grpc.codec.forms import AnswerForm, OutputForm
from naiad_grpc.codec.framing import ID_TAG, malformed, scan, split
from naiad_grpc.codec.inputs import Input, array_of_bytes
from naiad_grpc.codec.skeletons import Skeleton, read_message, read_skeleton
from naiad_grpc.codec.typed_size import check_typed_size

_REMEMBERED = 512
_LONGEST_REMEMBERED = 4096


class _Expected(NamedTuple):
    """What the next request to a model is likely to be: all of the last but its id and the contents of its tensors."""

    before_id: bytes
    after_id: bytes
    skeleton: Skeleton


class Decoder:
    """Decodes infer requests; `shared_memory` gives the service that has the regions.

    Clients send the same message around ever new ids and tensors, so its skeleton is remembered by its text. That
    saves most of the time of a small request, and so does comparing a message with the last one to the same model
    before looking for anything in it.
    """

    def __init__(self, shared_memory: Callable[[], SharedMemoryApi]) -> None:
        self._shared_memory = shared_memory
        self._skeletons: dict[bytes, Skeleton] = {}
        self._expected: dict[bytes, _Expected] = {}

    def decode(self, message: bytes) -> tuple[Request, AnswerForm]:
        """The request that the message holds and the form of the answer that it wants.

        Raises InvalidArgumentError, NotFoundError for a shared memory region that there is not, or UnsupportedError.
        """
        # a name longer than 127 bytes makes another key, which is as good as any
        expected = self._expected.get(message[: message[1] + 2]) if len(message) > 1 else None
        if expected is not None:
            request = _as_expected(message, *expected)
            if request is not None:
                return request, expected.skeleton.form
        return self._decode_any(message)

    def decode_large(self, message: bytes) -> tuple[Request, AnswerForm]:
        """As `decode`, for a message that `takes_long`, on a thread. Remembers nothing of it."""
        text, contents = split(message)
        check_typed_size(text)
        skeleton = read_skeleton(text, bool(contents))
        return self._filled(skeleton, skeleton.id, message, contents)

    def _decode_any(self, message: bytes) -> tuple[Request, AnswerForm]:
        layout = scan(message)
        if layout is None:
            text, contents = split(message)
            skeleton = read_skeleton(text, bool(contents))
            return self._filled(skeleton, skeleton.id, message, contents)
        before, after = message[: layout.id_start], message[layout.id_end : layout.contents_start]
        skeleton = self._skeleton(before + after, bool(layout.contents))
        request_id = _text(message[layout.text_start : layout.id_end])
        filled = self._filled(skeleton, request_id, message, layout.contents)
        if skeleton.raw_size >= 0 and 1 < len(before) + len(after) <= _LONGEST_REMEMBERED:
            _remember(self._expected, message[: message[1] + 2], _Expected(before, after, skeleton))
        return filled

    def _skeleton(self, text: bytes, has_raw: bool) -> Skeleton:
        skeleton = self._skeletons.get(text)
        if skeleton is None:
            skeleton = read_skeleton(text, has_raw)
            if not skeleton.inputs.tensors and len(text) <= _LONGEST_REMEMBERED:
                _remember(self._skeletons, text, skeleton)
        return skeleton

    def _filled(
        self, skeleton: Skeleton, request_id: str, message: bytes, contents: list[tuple[int, int]]
    ) -> tuple[Request, AnswerForm]:
        inputs = skeleton.inputs
        _check_contents(skeleton, len(contents))
        tensors = inputs.tensors.copy()
        for each, (start, size) in zip(inputs.raw, contents, strict=True):
            tensors[each.name] = _tensor(each, message, start, size, skeleton.model_name)
        for shared in inputs.shared:
            tensors[shared.name] = self._shared_memory().tensor(shared, skeleton.model_name)
        ordered = tensors if len(tensors) == len(inputs.raw) else {name: tensors[name] for name in inputs.names}
        request, form = _request(skeleton, request_id, ordered), self._form(skeleton)
        if inputs.shared or skeleton.shared_outputs:
            targets = {name: each.target for name, each in form.outputs.items()}
            request.transfer = self._shared_memory().request_io(ordered, targets)
        return request, form

    def _form(self, skeleton: Skeleton) -> AnswerForm:
        if not skeleton.shared_outputs:
            return skeleton.form
        outputs = dict(skeleton.form.outputs)
        shared_memory = self._shared_memory()
        for name, (region, offset, byte_size) in skeleton.shared_outputs:
            outputs[name] = OutputForm(target=shared_memory.output(region, offset, byte_size))
        return AnswerForm(outputs, skeleton.form.empty_final)


def request_id_of(message: bytes) -> str:
    """The id in a message that cannot be decoded, "" where that cannot be told. Its raw contents are not copied."""
    layout = scan(message)
    try:
        if layout is not None:
            return message[layout.text_start : layout.id_end].decode()
        if len(message) > COSTLY_BYTES:  # the id is not worth the time
            return ""
        found: str = read_message(split(message)[0]).id
    except (InvalidArgumentError, UnicodeDecodeError):
        return ""
    return found


def _as_expected(message: bytes, before_id: bytes, after_id: bytes, skeleton: Skeleton) -> Request | None:
    """The request, when the message is what was expected; else None, whatever is in it."""
    place = len(before_id)
    if not message.startswith(before_id) or place + 1 >= len(message):
        return None
    request_id = ""
    if message[place] == ID_TAG:
        size = message[place + 1]
        if size > 0x7F:
            return None
        start = place + 2
        place = start + size
        request_id = message[start:place].decode(errors="replace")
        if "\ufffd" in request_id:  # no UTF-8, or this very character
            return None
    if not message.startswith(after_id, place):
        return None
    place += len(after_id)
    if len(message) - place != skeleton.raw_size:
        return None
    tensors = {}
    for name, datatype, shape, dtype, _, size, _, askew, header, header_size in skeleton.inputs.raw:
        if not message.startswith(header, place):
            return None
        place += header_size
        if place & askew:
            array = np.ndarray(shape, dtype, message[place : place + size])
        else:
            array = np.ndarray(shape, dtype, message, place)
        tensors[name] = Tensor(name, datatype, shape, array)
        place += size
    return _request(skeleton, request_id, tensors)


def _request(skeleton: Skeleton, request_id: str, tensors: dict[str, Tensor]) -> Request:
    parameters = skeleton.parameters
    return Request(
        skeleton.model_name,
        tensors,
        skeleton.version,
        request_id,
        skeleton.requested,
        parameters.own,
        parameters.priority,
        parameters.timeout_microseconds,
        None,
        parameters.correlation_id,
        parameters.sequence_start,
        parameters.sequence_end,
    )


def _tensor(given: Input, message: bytes, start: int, size: int, model: str) -> Tensor:
    """The tensor over these bytes of the message; frameworks may not read numbers that are not aligned."""
    if start & given.askew:
        array = array_of_bytes(given, message[start : start + size], 0, size, model)
    else:
        array = array_of_bytes(given, message, start, size, model)
    return Tensor(given.name, given.datatype, given.shape, array)


def _check_contents(skeleton: Skeleton, got: int) -> None:
    raw = skeleton.inputs.raw
    if got == len(raw):
        return
    if not got:
        raise InvalidArgumentError(
            f"unable to find data for input tensor '{raw[0].name}' for model '{skeleton.model_name}' in request."
        )
    raise InvalidArgumentError(
        f"expected {len(raw)} raw_input_contents for model '{skeleton.model_name}', got {got}: one for each input that "
        "is not in shared memory, in the order of the inputs"
    )


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise malformed("its id is no UTF-8") from error


_Known = TypeVar("_Known")


def _remember(known: dict[bytes, _Known], key: bytes, value: _Known) -> None:
    if len(known) >= _REMEMBERED and key not in known:
        del known[next(iter(known))]
    known[key] = value
