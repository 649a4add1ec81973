"""The body of an infer request to a Request; tensors are views on the received bytes."""

import re
from collections.abc import Callable

import numpy as np

from naiad.config import ModelConfig
from naiad.errors import InvalidArgumentError
from naiad.protocol.buffers import Buffer, bool_array, unpack_strings
from naiad.types import Request, Tensor
from naiad_http.codec.envelope import Envelope
from naiad_http.codec.forms import AnswerForm
from naiad_http.codec.raw import raw_request
from naiad_http.codec.skeletons import BinaryInput, Skeleton, read_skeleton

_REMEMBERED = 512
_LONGEST_REMEMBERED = 4096
_LEADING_ID = re.compile(rb'\{\s*"id"\s*:\s*"([ !#-\[\]-~]*)"\s*,')
"""An id of printable ASCII without escapes, which is where clients put it: in front."""


class Decoder:
    """Decodes the bodies of infer requests.

    Clients send the same JSON in front of ever new bytes, so its skeleton is remembered by its text (without the id),
    which saves two thirds of the time of a small request. JSON that carries tensors is not remembered.
    """

    def __init__(self, max_input_size: int, model_config: Callable[[str, int], ModelConfig]) -> None:
        self._limit = max_input_size
        self._model_config = model_config
        self._skeletons: dict[bytes, Skeleton] = {}

    def decode(self, envelope: Envelope, front: Buffer, rest: Buffer) -> tuple[Request, AnswerForm]:
        """The request that the body holds and the form of the answer that it wants.

        `front` is the JSON part (`bytes`, but the whole body without a header length), `rest` the bytes behind it.
        Raises InvalidArgumentError, UnsupportedError, or what `model_config` raises (for a raw request only).
        """
        length = envelope.header_length
        if length is None:
            skeleton = read_skeleton(front, envelope.model_name, self._limit)
            request_id = skeleton.id
        elif length == 0:
            return raw_request(envelope, self._model_config(envelope.model_name, envelope.version), rest)
        elif length != len(front):
            total = len(front) + len(rest)
            raise InvalidArgumentError(f"inference header size should be in range (0, {total}), got: {length}")
        else:
            skeleton, request_id = self._skeleton(bytes(front), envelope.model_name)
        if skeleton.size != len(rest):
            raise _wrong_size(skeleton, len(rest), envelope.model_name)
        return _request(envelope, skeleton, request_id, rest), skeleton.form

    def _skeleton(self, front: bytes, model: str) -> tuple[Skeleton, str]:
        found = _LEADING_ID.match(front)
        key = front if found is None else front[found.end() :]
        skeleton = self._skeletons.get(key)
        if skeleton is None:
            skeleton = read_skeleton(key if found is None else b"{" + key, model, self._limit)
            if not skeleton.tensors and len(key) <= _LONGEST_REMEMBERED:
                if len(self._skeletons) >= _REMEMBERED:
                    del self._skeletons[next(iter(self._skeletons))]
                self._skeletons[key] = skeleton
        if found is None or skeleton.id:  # of two ids the later counts, as it does in any other key
            return skeleton, skeleton.id
        return skeleton, found[1].decode("ascii")


def _request(envelope: Envelope, skeleton: Skeleton, request_id: str, rest: Buffer) -> Request:
    inputs = _with_binary(skeleton, rest, envelope.model_name) if skeleton.binary else skeleton.tensors
    parameters = skeleton.parameters
    own = parameters.own
    if envelope.forwarded:  # a gateway's word counts more than the caller's
        own = {**own, **envelope.forwarded}
    return Request(
        envelope.model_name,
        inputs,
        envelope.version,
        request_id,
        skeleton.requested,
        own,
        parameters.priority,
        parameters.timeout_microseconds,
        None,
        parameters.correlation_id,
        parameters.sequence_start,
        parameters.sequence_end,
    )


def _with_binary(skeleton: Skeleton, rest: Buffer, model: str) -> dict[str, Tensor]:
    """All inputs of the skeleton, the binary ones over `rest`."""
    inputs = skeleton.tensors.copy()
    for each in skeleton.binary:
        name, datatype, shape, dtype, _elements, start, _size, is_view = each
        array = np.ndarray(shape, dtype, rest, start) if is_view else _array(each, rest, model)
        inputs[name] = Tensor(name, datatype, shape, array)
    return {name: inputs[name] for name in skeleton.names} if skeleton.tensors else inputs


def _array(given: BinaryInput, rest: Buffer, model: str) -> np.ndarray:
    """The array of an input that is not simply a view; frameworks may not read numbers that are not aligned."""
    if given.datatype == "BYTES":
        content = rest[given.start : given.start + given.size]
        return unpack_strings(content, given.elements, given.name, model).reshape(given.shape)
    if given.datatype == "BOOL":
        return bool_array(given.shape, rest, given.start)
    return np.ndarray(given.shape, given.dtype, rest, given.start).copy()


def _wrong_size(skeleton: Skeleton, got: int, model: str) -> InvalidArgumentError:
    if got > skeleton.size:
        return InvalidArgumentError(
            f"unexpected additional input data for model '{model}': the inputs take {skeleton.size} bytes behind the "
            f"JSON, the body has {got}"
        )
    short = next(each for each in skeleton.binary if each.start + each.size > got)
    return InvalidArgumentError(
        f"unexpected size for input '{short.name}', expecting {short.start + short.size - got} additional bytes for "
        f"model '{model}'"
    )
