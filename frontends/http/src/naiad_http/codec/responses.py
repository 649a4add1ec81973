"""A Response to the JSON and the buffers behind it; the bytes of a tensor are not copied, unless they are few.

Outputs that the caller wants in shared memory are written there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import orjson

from naiad.errors import InvalidArgumentError
from naiad.protocol.buffers import Buffer, pack_strings
from naiad.protocol.classification import best_classes
from naiad.types import Response, Tensor
from naiad_http.codec.forms import AnswerForm
from naiad_http.codec.tensors import ONLY_BINARY

_FEW_BYTES = 4096
"""Up to here a copy of a tensor costs less than one more buffer in a vectored write."""

_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@dataclass(slots=True)
class Encoded:
    """The body of an answer: its JSON, the buffers that follow it in this order, and how many bytes these are."""

    text: bytes
    buffers: Sequence[Buffer] = ()
    size: int = 0


class Encoder:
    """Encodes responses.

    `batches(model, version)` says whether the model has a batch dimension, and `labels(model, output, version)` gives
    the lines of an output's label file; both are asked only for classifications.
    """

    def __init__(self, batches: Callable[[str, int], bool], labels: Callable[[str, str, int], Sequence[str]]) -> None:
        self._batches = batches
        self._labels = labels

    def encode(self, response: Response, form: AnswerForm) -> Encoded:
        """The body for that response, in the form that its request asked for.

        Raises InvalidArgumentError when the caller wants as JSON what JSON cannot say, or classes of what has none, or
        gave too little shared memory for an output.
        """
        text: list[bytes] = [_opening(response)]
        buffers: list[Buffer] = []
        size = 0
        forms, unlisted = form.outputs, form.unlisted
        for name, tensor in response.outputs.items():
            wanted = forms.get(name, unlisted) if forms else unlisted
            if wanted.classes:
                tensor = self._classes(response, tensor, wanted.classes)
            if wanted.place is not None:
                if not wanted.place.holds(tensor):
                    wanted.place.store(tensor, _content(tensor)[0])
                text.append(_shared_output(name, tensor.datatype, tensor.shape))
            elif wanted.binary:
                content, length = _content(tensor)
                text.append(_binary_output(name, tensor.datatype, tensor.shape, length))
                if length:
                    buffers.append(content)
                    size += length
            else:
                text += (_json_output(name, tensor.datatype, tensor.shape), json_content(tensor), b"},")
        text[-1] = text[-1].removesuffix(b",")
        text.append(b"]}")
        return Encoded(b"".join(text), buffers, size)

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
def _model_part(name: str, version: int) -> bytes:
    return b'"model_name":%b,"model_version":"%d",' % (orjson.dumps(name), version)


@lru_cache(maxsize=4096)
def _binary_output(name: str, datatype: str, shape: tuple[int, ...], size: int) -> bytes:
    opening = _json_output(name, datatype, shape).removesuffix(b'"data":')
    return opening + b'"parameters":{"binary_data_size":%d}},' % size


@lru_cache(maxsize=4096)
def _shared_output(name: str, datatype: str, shape: tuple[int, ...]) -> bytes:
    return _json_output(name, datatype, shape).removesuffix(b',"data":') + b"},"


@lru_cache(maxsize=4096)
def _json_output(name: str, datatype: str, shape: tuple[int, ...]) -> bytes:
    return b'{"name":%b,"datatype":"%b","shape":%b,"data":' % (
        orjson.dumps(name),
        datatype.encode(),
        orjson.dumps([int(size) for size in shape]),
    )


def _content(tensor: Tensor) -> tuple[Buffer, int]:
    """The bytes of a tensor in the wire's layout, and how many they are."""
    array = tensor.array
    if tensor.datatype == "BYTES":
        packed = pack_strings(array.ravel().tolist())
        return packed, len(packed)
    size = array.nbytes
    if size <= _FEW_BYTES:
        return array.tobytes(), size
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array.data.cast("B"), size


def json_content(tensor: Tensor) -> bytes:
    """The elements of a tensor as a flat JSON array. Raises InvalidArgumentError for what JSON cannot say."""
    array = tensor.array
    if tensor.datatype in ONLY_BINARY:
        raise InvalidArgumentError(
            f"sending {tensor.datatype} data via JSON is not supported. "
            f"Please use the binary data format for output '{tensor.name}'"
        )
    if tensor.datatype == "BYTES":
        return _json_strings(tensor)
    text = orjson.dumps(array.ravel(), option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" in text:  # orjson writes what is not finite so
        told = (str(value) for value in array.reshape(-1))
        return "[{}]".format(",".join(_NOT_FINITE.get(value, value) for value in told)).encode()
    return text


def _json_strings(tensor: Tensor) -> bytes:
    elements = tensor.array.ravel().tolist()
    try:
        return orjson.dumps([element if isinstance(element, str) else element.decode() for element in elements])
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"output '{tensor.name}' has bytes that are no UTF-8, which JSON cannot carry. "
            "Please use the binary data format for it"
        ) from error
