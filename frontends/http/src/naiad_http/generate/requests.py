"""The flat JSON of a generate request to a Request: names say what is a tensor, the configuration of what kind."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from naiad.buffers import Buffer
from naiad.datatypes import tensor_type, wire_name
from naiad.errors import InvalidArgumentError
from naiad.types import Request, Tensor
from naiad_config import ModelConfig, ModelInput
from naiad_http.codec.documents import as_object, as_string, too_deep
from naiad_http.codec.large_documents import read_document
from naiad_http.codec.parameters import read_parameters
from naiad_http.codec.request_head import RequestHead
from naiad_http.codec.tensors import ONLY_BINARY, array_of_json
from naiad_http.generate.documents import BINARY
from naiad_http.generate.shapes import deduced_shape

_NESTED = "parameters"
_MANY = 64
"""So many keys are looked for one by one in the text, which takes a pass over it for each."""


class GenerateDecoder:
    """Decodes the bodies of `generate` and `generate_stream`; an input takes at most `max_input_size` bytes."""

    def __init__(self, max_input_size: int, model_config: Callable[[str, int], ModelConfig]) -> None:
        self._limit = max_input_size
        self._model_config = model_config

    def decode(self, request_head: RequestHead, body: Buffer) -> Request:
        """The request that the body holds; it asks for all outputs.

        Raises InvalidArgumentError for what makes no sense for that model, and what `model_config` raises.
        """
        config = self._model_config(request_head.model_name, request_head.version)
        document = _read(body)
        declared = {given.name: given for given in config.input}
        request_id = ""
        if "id" in document and "id" not in declared:
            request_id = as_string(document["id"], "id")
        values, others = _sorted_out(document, declared)
        batching = config.max_batch_size > 0
        inputs = {name: _tensor(declared[name], value, batching, self._limit) for name, value in values.items()}
        parameters = read_parameters(others)
        return Request(
            request_head.model_name,
            inputs,
            request_head.version,
            request_id,
            parameters={**parameters.own, **request_head.forwarded},  # a gateway's word counts more than the caller's
            priority=parameters.priority,
            timeout_microseconds=parameters.timeout_microseconds,
            correlation_id=parameters.correlation_id,
            sequence_start=parameters.sequence_start,
            sequence_end=parameters.sequence_end,
        )


def _read(body: Buffer) -> Mapping[str, Any]:
    """The JSON object in the body. Raises InvalidArgumentError where a key stands twice.

    Our parser keeps the last of two, so a text that seems to have a key twice is read again by a slower one.
    """
    value, text = read_document(body)
    document = as_object(value, "request")
    nested = document.get(_NESTED)
    keys = [*document, *(nested if type(nested) is dict else ())]
    if len(keys) > _MANY or any(text.count(json.dumps(key, ensure_ascii=False).encode()) > 1 for key in keys):
        try:
            json.loads(text, object_pairs_hook=_refuse_twins)
        except RecursionError as error:
            raise too_deep() from error
    return document


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _twice(key)
        found[key] = value
    return found


def _sorted_out(
    document: Mapping[str, Any], declared: Mapping[str, ModelInput]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of inputs, and those of parameters: from the document itself and from its `parameters`."""
    values: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in document.items():
        if key == _NESTED and key not in declared and type(value) is dict:
            for inner, below in value.items():
                _put(inner, below, values if inner in declared else others)
        elif key != "id" or key in declared:
            _put(key, value, values if key in declared else others)
    return values, others


def _put(key: str, value: Any, found: dict[str, Any]) -> None:
    if key in found:
        raise _twice(key)
    found[key] = value


def _twice(key: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"'{key:.80}' already exists in request; give each input and parameter once")


def _tensor(given: ModelInput, value: Any, batching: bool, limit: int) -> Tensor:
    kind = tensor_type(wire_name(given.data_type))
    elements = value if type(value) is list else [value]
    kinds = set(map(type, elements))
    if list in kinds or dict in kinds or type(None) in kinds:
        raise InvalidArgumentError(
            f"Unable to parse input '{given.name}': give one value, or a flat array of values without null"
        )
    shape = deduced_shape(tuple(given.dims), len(elements), given.name)
    if batching:
        shape = (1, *shape)
    try:
        array = array_of_json(elements, given.name, kind, shape, len(elements), limit)
    except InvalidArgumentError as error:
        if kind.wire not in ONLY_BINARY:
            raise
        raise InvalidArgumentError(f"{error}; {BINARY}") from error
    return Tensor(given.name, kind.wire, shape, array)
