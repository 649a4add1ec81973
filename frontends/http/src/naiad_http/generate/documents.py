"""Encoder of a model's response to the flat JSON of the generate extension."""

from functools import lru_cache

import orjson

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad.types import Response
from naiad_http.codec.responses import MAX_JSON_OUTPUT, json_content
from naiad_tensors.tensors import Tensor

_SHORT = 4096
"""Strings up to this size are within any limit."""

_OF_MODEL = frozenset(("model_name", "model_version"))

BINARY = "infer has that, and so has gRPC: generate has JSON alone"
"""The advice of the error for a tensor that JSON cannot carry."""


def document_of(response: Response, limit: int = MAX_JSON_OUTPUT, on_thread: bool = True) -> bytes:
    """The JSON object: model, response parameters and outputs side by side; a single element has no brackets.

    Of members with the same name an output takes precedence, then the model's name and version, then parameters.
    Raises InvalidArgumentError for an output that JSON cannot represent, TooLargeError above `limit` bytes, and
    LargeOutput, unless it runs `on_thread`, for an output that takes many milliseconds.
    """
    outputs = response.outputs
    if not response.parameters and not response.id and _OF_MODEL.isdisjoint(outputs):
        own = [_key(name) + _value(tensor, limit, on_thread) for name, tensor in outputs.items()]
        return b"{%b}" % b",".join([_model_text(response.model_name, response.version), *own])
    members: dict[str, bytes] = {}
    if response.parameters:
        for key, value in response.parameters.items():
            members[key] = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    if response.id:
        members["id"] = orjson.dumps(response.id)
    members |= _model_members(response.model_name, response.version)
    for name, tensor in outputs.items():
        members[name] = _value(tensor, limit, on_thread)
    return b"{%b}" % b",".join([_key(name) + content for name, content in members.items()])


def _value(tensor: Tensor, limit: int, on_thread: bool) -> bytes:
    try:
        array = tensor.array
        if array.size != 1:
            return json_content(tensor, limit, on_thread)
        if tensor.datatype == "BYTES" and len(array.item()) <= _SHORT:  # most streams consist of these
            try:
                return orjson.dumps(array.item().decode())
            except UnicodeDecodeError:
                pass  # the other path raises the error
        return json_content(tensor, limit, on_thread)[1:-1]
    except (InvalidArgumentError, TooLargeError) as error:
        raise type(error)(f"{error}; {BINARY}") from error


@lru_cache(maxsize=1024)
def _model_members(name: str, version: int) -> dict[str, bytes]:
    return {"model_name": orjson.dumps(name), "model_version": b'"%d"' % version}


@lru_cache(maxsize=1024)
def _model_text(name: str, version: int) -> bytes:
    return b",".join([_key(key) + value for key, value in _model_members(name, version).items()])


@lru_cache(maxsize=1024)
def _key(name: str) -> bytes:
    return orjson.dumps(name) + b":"
