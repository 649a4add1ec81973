"""Encoder of infer responses: the JSON and the buffers after it; only small tensors are copied.

Outputs requested in shared memory are written there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import orjson

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad.types import Response
from naiad_http.codec.forms import ResponseForm
from naiad_http.codec.tensors import ONLY_BINARY
from naiad_kit.buffers import Buffer, pack_strings
from naiad_kit.frontends.classification import best_classes
from naiad_tensors.laid_out import ArrayLayout, LaidOutArrays
from naiad_tensors.tensors import Tensor

_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs
_FEW_BYTES = 4096
"""Up to this size a copy of a tensor costs less than one more buffer in a vectored write."""

_JSON_OF_FEW_BYTES = 65536
"""The JSON of a small output is shorter: a byte takes 6 at most ("-128" and a comma, "false" and a comma)."""

_PIECE = 65536
"""Elements that are written as JSON at a time: the JSON library reserves up to 27 bytes for each, and ends the process
if there is no memory for them; it also holds the interpreter's lock meanwhile."""

LARGE_ELEMENTS = 16384
"""Up to this number JSON, strings and classes take a millisecond or two, and are encoded on the event loop."""

MAX_JSON_OUTPUT = 67108864
"""The default maximum of the JSON of an output in bytes."""

_LARGE_STRINGS = 1 << 20
_FEW_STRINGS = 16
"""Up to this number the lengths of strings are added; up to 1 MiB together are encoded on the event loop."""

_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class LargeOutput(Exception):  # noqa: N818 - not an error: a thread must encode the output
    """An output that is too large to be encoded on the event loop."""


@dataclass(slots=True)
class Encoded:
    """The body of a response: its JSON, the buffers that follow it in this order, and the bytes of these buffers."""

    text: bytes
    buffers: Sequence[Buffer] = ()
    size: int = 0


class Encoder:
    """Encodes responses.

    `batches(model, version)` is whether the model has a batch dimension, `labels(model, output, version)` the lines of
    an output's label file; both are called only for classifications.
    """

    def __init__(
        self,
        batches: Callable[[str, int], bool],
        labels: Callable[[str, str, int], Sequence[str]],
        max_json_output: int = MAX_JSON_OUTPUT,
    ) -> None:
        self._batches = batches
        self._labels = labels
        self._limit = max_json_output

    def encode(self, response: Response, form: ResponseForm, on_thread: bool = False) -> Encoded:
        """The body of that response, in the form that its request asked for.

        Raises InvalidArgumentError for an output that JSON cannot represent, for classes of an output that has none,
        and for a shared memory region that is too small. Raises LargeOutput, unless it runs `on_thread`, for an output
        that takes many milliseconds.
        """
        is_plain = not (response.id or response.parameters)
        laid_out = response.outputs
        if type(laid_out) is LaidOutArrays and is_plain and laid_out.layout.is_small:
            layout = laid_out.layout
            if form.all_binary:
                contents = [array.tobytes() for array in laid_out.arrays]
                return Encoded(_binary_outputs(response.model_name, response.version, layout), contents, layout.nbytes)
            if form.all_json and self._limit >= _JSON_OF_FEW_BYTES and not ONLY_BINARY.intersection(layout.datatypes):
                numbers = [_json_numbers(array.ravel()) for array in laid_out.arrays]
                return Encoded(_json_outputs(response.model_name, response.version, layout) % tuple(numbers))
        text = [_plain_opening(response.model_name, response.version) if is_plain else _opening(response)]
        buffers: list[Buffer] = []
        content: Buffer
        size = 0
        forms, unlisted = form.outputs, form.unlisted
        for name, tensor in response.outputs.items():
            requested = forms.get(name, unlisted) if forms else unlisted
            if requested.classes:
                _leave_to_thread(tensor, on_thread)
                tensor = self._classes(response, tensor, requested.classes)
            if requested.binary:
                payload = tensor.payload
                if type(payload) is _ndarray and payload.nbytes <= _FEW_BYTES and tensor.datatype != "BYTES":
                    content = payload.tobytes()  # the usual case of `_content`
                    length = len(content)
                else:
                    content, length = _content(tensor, on_thread)
                text.append(_binary_output(name, tensor.datatype, tensor.shape, length))
                if length:
                    buffers.append(content)
                    size += length
            elif requested.target is not None:
                if not requested.target.holds(tensor):
                    requested.target.store(tensor, _content(tensor, on_thread)[0])
                text.append(_shared_output(name, tensor.datatype, tensor.shape))
            else:
                elements = json_content(tensor, self._limit, on_thread)
                text += (_json_output(name, tensor.datatype, tensor.shape), elements, b"},")
        whole = b"".join(text)
        return Encoded((whole[:-1] if response.outputs else whole) + b"]}", buffers, size)

    def _classes(self, response: Response, tensor: Tensor, classes: int) -> Tensor:
        labels = self._labels(response.model_name, tensor.name, response.version)
        return best_classes(tensor, classes, labels, self._batches(response.model_name, response.version))


def _opening(response: Response) -> bytes:
    opening = b'{"id":%b,' % orjson.dumps(response.id) if response.id else b"{"
    opening += _model_part(response.model_name, response.version)
    if response.parameters:
        opening += b'"parameters":%b,' % orjson.dumps(dict(response.parameters), option=orjson.OPT_SERIALIZE_NUMPY)
    return opening + b'"outputs":['


@lru_cache(maxsize=1024)
def _plain_opening(model: str, version: int) -> bytes:
    return b'{%b"outputs":[' % _model_part(model, version)


@lru_cache(maxsize=1024)
def _model_part(name: str, version: int) -> bytes:
    return b'"model_name":%b,"model_version":"%d",' % (orjson.dumps(name), version)


@lru_cache(maxsize=1024)
def _binary_outputs(model: str, version: int, layout: ArrayLayout) -> bytes:
    """The whole text about outputs that are all binary."""
    parts = [
        _binary_output(name, datatype, shape, size)
        for name, datatype, shape, size in zip(layout.names, layout.datatypes, layout.shapes, layout.sizes, strict=True)
    ]
    return _plain_opening(model, version) + b"".join(parts)[:-1] + b"]}"


@lru_cache(maxsize=1024)
def _json_outputs(model: str, version: int, layout: ArrayLayout) -> bytes:
    """The text about outputs that are all JSON, to be formatted with the elements of each."""
    parts = zip(layout.names, layout.datatypes, layout.shapes, strict=True)
    outputs = [_json_output(*each).replace(b"%", b"%%") + b"%b}" for each in parts]
    return _plain_opening(model, version).replace(b"%", b"%%") + b",".join(outputs) + b"]}"


@lru_cache(maxsize=1024)
def _binary_output(name: str, datatype: str, shape: tuple[int, ...], size: int) -> bytes:
    opening = _json_output(name, datatype, shape).removesuffix(b'"data":')
    return opening + b'"parameters":{"binary_data_size":%d}},' % size


@lru_cache(maxsize=1024)
def _shared_output(name: str, datatype: str, shape: tuple[int, ...]) -> bytes:
    return _json_output(name, datatype, shape).removesuffix(b',"data":') + b"},"


@lru_cache(maxsize=1024)
def _json_output(name: str, datatype: str, shape: tuple[int, ...]) -> bytes:
    return b'{"name":%b,"datatype":"%b","shape":%b,"data":' % (
        orjson.dumps(name),
        datatype.encode(),
        orjson.dumps([int(size) for size in shape]),
    )


def _content(tensor: Tensor, on_thread: bool) -> tuple[Buffer, int]:
    """The bytes of a tensor in the layout of the protocol, and their number."""
    array = tensor.payload if type(tensor.payload) is _ndarray else tensor.array
    if tensor.datatype == "BYTES":
        _leave_to_thread(tensor, on_thread)
        packed = pack_strings(array.ravel().tolist())
        return packed, len(packed)
    size = array.nbytes
    if size <= _FEW_BYTES:
        return array.tobytes(), size
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array.data.cast("B"), size


def json_content(tensor: Tensor, limit: int = MAX_JSON_OUTPUT, on_thread: bool = True) -> bytes:
    """The elements of a tensor as a flat JSON array.

    Raises InvalidArgumentError for an output that JSON cannot represent, TooLargeError for more than `limit` bytes, and
    LargeOutput, unless it runs `on_thread`, for an output that takes many milliseconds.
    """
    array = tensor.payload if type(tensor.payload) is _ndarray else tensor.array
    is_text = tensor.datatype == "BYTES"
    if not on_thread and (_needs_thread(tensor) if is_text else array.size > LARGE_ELEMENTS):
        raise LargeOutput
    if tensor.datatype in ONLY_BINARY:
        raise InvalidArgumentError(
            f"sending {tensor.datatype} data via JSON is not supported. "
            f"Please use the binary data format for output '{tensor.name}'"
        )
    if array.size <= _PIECE:
        text = _json_strings(array.ravel(), tensor.name) if is_text else _json_numbers(array.ravel())
        if len(text) > limit:
            _check_json_size(len(text), tensor, limit)
        return text
    _check_json_size(2 * array.size, tensor, limit)  # a digit and a comma at least
    flat = array.reshape(-1)
    pieces: list[bytes] = []
    size = 1
    for start in range(0, flat.size, _PIECE):
        elements = flat[start : start + _PIECE].ravel()
        piece = (_json_strings(elements, tensor.name) if is_text else _json_numbers(elements))[1:-1]
        size += len(piece) + 1
        _check_json_size(size, tensor, limit)
        pieces.append(piece)
    return b"[%b]" % b",".join(pieces)


def _json_numbers(flat: np.ndarray) -> bytes:
    text = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)
    if flat.dtype.kind == "f" and text.find(b"null") >= 0:  # orjson writes values that are not finite so
        values = (str(value) for value in flat)
        return "[{}]".format(",".join(_NOT_FINITE.get(value, value) for value in values)).encode()
    return text


def _json_strings(flat: np.ndarray, name: str) -> bytes:
    try:
        return orjson.dumps([each if isinstance(each, str) else each.decode() for each in flat.tolist()])
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"output '{name}' has bytes that are not valid UTF-8, which JSON cannot carry. "
            "Please use the binary data format for it"
        ) from error


def _check_json_size(size: int, tensor: Tensor, limit: int) -> None:
    if size > limit:
        raise TooLargeError(
            f"output '{tensor.name}' of {tensor.array.size} elements takes {size} bytes or more as JSON, which exceeds "
            f'the maximum of {limit} bytes; ask for it as binary output ("binary_data": true in the parameters of the '
            "output), or raise --http-max-json-output"
        )


def _leave_to_thread(tensor: Tensor, on_thread: bool) -> None:
    """Raise LargeOutput for a tensor that takes many milliseconds to encode, on the event loop."""
    if not on_thread and _needs_thread(tensor):
        raise LargeOutput


def _needs_thread(tensor: Tensor) -> bool:
    """Whether encoding the tensor as JSON takes too long for the event loop."""
    array = tensor.array
    if tensor.datatype == "BYTES" and array.size <= _FEW_STRINGS:
        return sum(map(len, array.flat)) > _LARGE_STRINGS
    return array.size > LARGE_ELEMENTS
