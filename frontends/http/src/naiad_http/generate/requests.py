"""Decoder of generate requests: flat JSON in which the model's configuration says which members are tensors."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_config import ModelConfig, ModelInput
from naiad_http.codec.documents import as_object, as_string, too_deep
from naiad_http.codec.large_documents import read_document
from naiad_http.codec.parameters import read_parameters
from naiad_http.codec.request_head import RequestHead
from naiad_http.codec.tensors import ONLY_BINARY, array_of_json
from naiad_http.generate.documents import BINARY
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.parameters import Parameters
from naiad_kit.frontends.shapes import deduced_shape
from naiad_tensors.datatypes import tensor_type, wire_name
from naiad_tensors.tensors import Tensor

_NESTED = "parameters"
_MANY = 64
"""Up to this number keys are counted one by one in the text, which takes a pass over it for each."""


class GenerateDecoder:
    """Decodes the bodies of `generate` and `generate_stream`; an input takes at most `max_input_size` bytes."""

    def __init__(self, max_input_size: int, model_config: Callable[[str, int], ModelConfig]) -> None:
        self._limit = max_input_size
        self._model_config = model_config

    def decode(self, request_head: RequestHead, body: Buffer) -> Request:
        """The request in the body; it requests all outputs.

        Raises InvalidArgumentError for a body that is invalid for that model, and what `model_config` raises.
        """
        config = self._model_config(request_head.model_name, request_head.version)
        document = _read(body)
        declared = {each.name: each for each in config.input}
        request_id = ""
        if "id" in document and "id" not in declared:
            request_id = as_string(document["id"], "id")
        values, others = _inputs_and_parameters(document, declared)
        batching = config.max_batch_size > 0
        inputs = {name: _tensor(declared[name], value, batching, self._limit) for name, value in values.items()}
        parameters = _parameters(others, declared)
        return Request(
            request_head.model_name,
            inputs,
            request_head.version,
            request_id,
            parameters={**parameters.own, **request_head.forwarded},  # a gateway's header overrides the caller's
            priority=parameters.priority,
            timeout_microseconds=parameters.timeout_microseconds,
            correlation_id=parameters.correlation_id,
            sequence_start=parameters.sequence_start,
            sequence_end=parameters.sequence_end,
        )


def _read(body: Buffer) -> Mapping[str, Any]:
    """The JSON object in the body. Raises InvalidArgumentError for a duplicate key.

    Our parser keeps the last of two, so a text that may have a duplicate key is parsed again by a slower one.
    """
    value, text = read_document(body)
    document = as_object(value, "request")
    nested = document.get(_NESTED)
    keys = [*document, *(nested if type(nested) is dict else ())]
    if len(keys) > _MANY or any(text.count(json.dumps(key, ensure_ascii=False).encode()) > 1 for key in keys):
        try:
            json.loads(text, object_pairs_hook=_refuse_duplicates)
        except RecursionError as error:
            raise too_deep() from error
    return document


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        _put(key, value, members)
    return members


def _inputs_and_parameters(
    document: Mapping[str, Any], declared: Mapping[str, ModelInput]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of inputs and those of parameters, from the document itself and from its `parameters`."""
    values: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in document.items():
        if key == _NESTED and key not in declared and type(value) is dict:
            for inner, below in value.items():
                _put(inner, below, values if inner in declared else others)
        elif key != "id" or key in declared:
            _put(key, value, values if key in declared else others)
    return values, others


def _parameters(document: Mapping[str, Any], declared: Mapping[str, ModelInput]) -> Parameters:
    """The parameters beside the inputs; an error names the inputs, as one of them may be written in another way."""
    try:
        return read_parameters(document)
    except InvalidArgumentError as error:
        if all(type(value) in (str, bool, int, float) for value in document.values()):
            raise
        raise InvalidArgumentError(
            f"{error} The model has no such input; its inputs are {', '.join(declared)}"
        ) from error


def _put(key: str, value: Any, members: dict[str, Any]) -> None:
    if key in members:
        raise InvalidArgumentError(f"'{key:.80}' already exists in request; give each input and parameter once")
    members[key] = value


def _tensor(declared: ModelInput, value: Any, batching: bool, limit: int) -> Tensor:
    kind = tensor_type(wire_name(declared.data_type))
    elements = value if type(value) is list else [value]
    kinds = set(map(type, elements))
    if list in kinds or dict in kinds or type(None) in kinds:
        raise InvalidArgumentError(
            f"Unable to parse input '{declared.name}': give one value, or a flat array of values without null; the "
            f"dims {list(declared.dims)} of the model say the rest, row by row"
        )
    shape = deduced_shape(tuple(declared.dims), len(elements), declared.name)
    if batching:
        shape = (1, *shape)
    try:
        array = array_of_json(elements, declared.name, kind, shape, len(elements), limit)
    except InvalidArgumentError as error:
        if kind.wire not in ONLY_BINARY:
            raise
        raise InvalidArgumentError(f"{error}; {BINARY}") from error
    return Tensor(declared.name, kind.wire, shape, array)
