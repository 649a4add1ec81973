"""Encoder of responses to the buffers of a ModelInferResponse; only small tensors are copied."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from struct import pack

import numpy as np

from naiad.types import ParameterValue, Response
from naiad_grpc.codec.forms import OutputForm, ResponseForm
from naiad_grpc.codec.framing import ID_TAG, field, header, varint
from naiad_kit.buffers import Buffer, pack_strings
from naiad_kit.frontends.classification import best_classes
from naiad_tensors.datatypes import tensor_type
from naiad_tensors.laid_out import ArrayLayout, LaidOutArrays
from naiad_tensors.tensors import Tensor

FINAL = "triton_final_response"
"""The parameter of each response of a stream that says whether it is the last of its request."""

_FEW_BYTES = 4096
"""Up to this size a copy of a tensor costs less than one more buffer in a vectored write."""

_ARRAY = np.ndarray
_CONTENTS_TAG = 0x32
_ERROR_TAG, _RESPONSE_TAG = 0x0A, 0x12
_PARAMETER_TAG, _OUTPUT_TAG = 0x22, 0x2A
_MAX_INT64 = 2**63 - 1
_MAX_CACHED = 1024


MOST_ELEMENTS = 16384
"""The maximum of strings or classes that are encoded on the event loop: some milliseconds."""


class TakesLong(Exception):  # noqa: N818 - no error: it says where to encode
    """A response has more strings or values to classify than an event loop may encode."""


_OutputPart = tuple[bytes, bytes]
"""The description of an output in the message, and the header of its contents ("" if their size may vary)."""


class Encoder:
    """Encodes responses.

    `batches(model, version)` is whether the model has a batch dimension, `labels(model, output, version)` the lines of
    an output's label file; both are called only for classifications.
    """

    def __init__(
        self,
        batches: Callable[[str, int], bool],
        labels: Callable[[str, str, int], Sequence[str]],
        most_elements: int = MOST_ELEMENTS,
    ) -> None:
        self._most = most_elements
        self._batches = batches
        self._labels = labels
        self._described: dict[tuple[str, str, tuple[int, ...]], _OutputPart] = {}

    def encode(self, response: Response, form: ResponseForm, mark: bytes = b"") -> list[Buffer]:
        """The message of that response, in the form that its request asked for; `mark` is an additional parameter.

        Raises InvalidArgumentError for classes of an output that has none or for a shared memory region that is too
        small, and TakesLong if more than `most_elements` must be converted one by one.
        """
        message: list[Buffer] = [_opening(response.model_name, response.version)]
        if response.id:
            message.append(_id(response.id))
        if response.parameters:
            message.append(_parameters(response.parameters))
        if mark:
            message.append(mark)
        contents: list[Buffer] = []
        is_small, forms = True, form.outputs
        outputs = response.outputs
        if not forms and type(outputs) is LaidOutArrays and outputs.layout.is_small:
            text, fronts = _texts(outputs.layout)
            message.append(text)
            for front, array in zip(fronts, outputs.arrays, strict=True):
                message += (front, array.tobytes())
            return [b"".join(message)]
        for name, tensor in outputs.items():
            payload = tensor.payload
            if forms and name in forms:
                is_small = False
                tensor, content = self._formed(response, tensor, forms[name])
            elif type(payload) is _ARRAY and payload.nbytes <= _FEW_BYTES and tensor.datatype != "BYTES":
                content = payload.tobytes()  # the usual case of `_content`
            else:
                is_small = False
                content = self._content(tensor)
            text, front = self._described.get((name, tensor.datatype, tensor.shape)) or self._describe(name, tensor)
            message.append(text)
            if content is None:
                contents.append(_NO_CONTENTS)
            else:
                contents += (front or header(_CONTENTS_TAG, len(content)), content)
        message += contents
        return [b"".join(message)] if is_small else message

    def encode_part(self, response: Response, form: ResponseForm) -> list[Buffer]:
        """The message of a stream that carries that response. Raises InvalidArgumentError as `encode` does."""
        message = self.encode(response, form, _FINAL_MARK if response.final else _MORE_MARK)
        return [header(_RESPONSE_TAG, sum(map(len, message))), *message]

    def _formed(self, response: Response, tensor: Tensor, form: OutputForm) -> tuple[Tensor, Buffer | None]:
        """The tensor in its requested form, and its contents; None if they are in shared memory."""
        if form.target is not None:
            if not form.target.holds(tensor):
                form.target.store(tensor, self._content(tensor))
            return tensor, None
        if tensor.array.size > self._most:
            raise TakesLong
        labels = self._labels(response.model_name, tensor.name, response.version)
        batched = self._batches(response.model_name, response.version)
        tensor = best_classes(tensor, form.classes, labels, batched)
        return tensor, self._content(tensor)

    def _content(self, tensor: Tensor) -> Buffer:
        """The bytes of a tensor in the layout of the protocol."""
        array = tensor.array
        if tensor.datatype == "BYTES":
            if array.size > self._most:
                raise TakesLong
            return pack_strings(array.ravel().tolist())
        if array.nbytes <= _FEW_BYTES:
            return array.tobytes()
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        return array.data.cast("B")

    def _describe(self, name: str, tensor: Tensor) -> _OutputPart:
        described = _described(name, tensor.datatype, tensor.shape)
        if len(self._described) >= _MAX_CACHED:
            self._described = {}  # no entry is taken out: another thread may add one meanwhile
        self._described[name, tensor.datatype, tensor.shape] = described
        return described


def _described(name: str, datatype: str, shape: tuple[int, ...]) -> _OutputPart:
    text = _named(name) + field(0x12, datatype.encode())
    if shape:
        text += field(0x1A, b"".join(varint(int(size)) for size in shape))
    itemsize = tensor_type(datatype).itemsize
    return field(_OUTPUT_TAG, text), header(_CONTENTS_TAG, itemsize * prod(map(int, shape))) if itemsize else b""


@lru_cache(maxsize=1024)
def _texts(layout: ArrayLayout) -> tuple[bytes, tuple[bytes, ...]]:
    """The descriptions of all outputs, and the headers of their contents."""
    described = list(map(_described, layout.names, layout.datatypes, layout.shapes))
    return b"".join(text for text, _ in described), tuple(front for _, front in described)


def encode_error(message: str, request_id: str, model: str = "", version: int = 0, final: bool | None = None) -> bytes:
    """The message of a stream that reports the error of a request.

    A refused request has only an id; for others `final` says whether this is their last response.
    """
    response = _opening(model, version) if model else b""
    if request_id:
        response += _id(request_id)
    if final is not None:
        response += _FINAL_MARK if final else _MORE_MARK
    return field(_ERROR_TAG, message.encode("utf-8", "replace")) + field(_RESPONSE_TAG, response)


@lru_cache(maxsize=1024)
def _opening(model: str, version: int) -> bytes:
    named = _named(model)
    return named + field(0x12, b"%d" % version) if version else named


def _id(request_id: str) -> bytes:
    content = request_id.encode("utf-8", "replace")
    size = len(content)
    return (bytes((ID_TAG, size)) if size < 0x80 else header(ID_TAG, size)) + content


def _named(name: str) -> bytes:
    """The first field of several messages: a name."""
    return field(0x0A, name.encode("utf-8", "replace"))


def _parameters(parameters: Mapping[str, ParameterValue]) -> bytes:
    return b"".join(_parameter(key, value) for key, value in parameters.items())


def _parameter(key: str, value: ParameterValue) -> bytes:
    return field(_PARAMETER_TAG, _named(key) + field(0x12, _choice(value)))


def _choice(value: ParameterValue) -> bytes:
    """The InferParameter of a value, which may be a number of numpy's."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return b"\x08\x01" if value else b"\x08\x00"
    if isinstance(value, int):
        return (b"\x10" if value <= _MAX_INT64 else b"\x28") + varint(value)
    if isinstance(value, float):
        return b"\x21" + pack("<d", value)
    return field(0x1A, str(value).encode("utf-8", "replace"))


_FINAL_MARK, _MORE_MARK = _parameter(FINAL, True), _parameter(FINAL, False)
_NO_CONTENTS = header(_CONTENTS_TAG, 0)
