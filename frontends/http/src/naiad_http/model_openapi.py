"""OpenAPI description of one loaded model: its operations with ids, the schemas of its tensors, and examples. Pure."""

import re
from math import prod
from typing import Any
from urllib.parse import quote

from naiad.reports import ModelMetadata, TensorMetadata
from naiad_http.openapi_answers import ANSWERS, success_of
from naiad_http.openapi_schemas import (
    EXPLAIN,
    INFER_ANSWERS,
    PARAMETERS,
    SCHEMAS,
    STRING,
    TIMEOUT,
    errors_of,
    object_of,
    ref,
)

_COUNTED = 16
"""Examples of up to so many elements are counted out; those of larger ones are zeros."""

_LARGEST_EXAMPLE = 4096
"""A request with an input of more elements has no example."""

_INTEGERS = {f"{sign}INT{bits}": (sign, bits) for sign in ("", "U") for bits in (8, 16, 32, 64)}


def describe_model(metadata: ModelMetadata, version: int, decoupled: bool) -> dict[str, Any]:
    """The description as a JSON document, of a `version` or of all (0)."""
    name = metadata.name
    path = f"/v2/models/{quote(name, safe='')}" + (f"/versions/{version}" if version else "")
    paths = {
        path: {"get": _read("metadata", path, name, "Inputs and outputs of the model")},
        f"{path}/ready": {"get": _read("ready", f"{path}/ready", name, "Whether the model can serve")},
        f"{path}/config": {"get": _read("config", f"{path}/config", name, "The model's whole configuration")},
        f"{path}/stats": {"get": _read("stats", f"{path}/stats", name, "Counters of the model")},
        f"{path}/generate_stream": {"post": _generate(metadata, "generate_stream", "text/event-stream")},
    }
    if not decoupled:
        paths[f"{path}/generate"] = {"post": _generate(metadata, "generate", "application/json")}
    if not decoupled and _json_carries(metadata):
        paths[f"{path}/infer"] = {"post": _infer(metadata)}
    title = f"{name} version {version}" if version else name
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": ", ".join(map(str, metadata.versions)) or "0",
            "description": f"The model {name} ({metadata.platform})" if metadata.platform else f"The model {name}",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Error": SCHEMAS["Error"],
                **{each: ANSWERS[each] for each in ("ModelMetadata", "ModelReady", "ModelConfig", "Statistics")},
                "Request": _request(metadata),
                "Response": _response(metadata),
                "GenerateRequest": _flat(metadata),
            }
        },
    }


def model_operation_id(action: str, model: str) -> str:
    """The id of an operation of a model: `infer_add_sub`."""
    return f"{action}_{re.sub(r'[^0-9A-Za-z]+', '_', model)}"


def _read(action: str, path: str, model: str, summary: str) -> dict[str, Any]:
    answers = {404: "the model was unloaded", 503: "the model does not serve now"}
    return {
        "operationId": model_operation_id(action, model),
        "summary": summary,
        "tags": [model],
        "responses": {"200": success_of(path), **errors_of(answers)},
    }


def _infer(metadata: ModelMetadata) -> dict[str, Any]:
    example = {"inputs": [_example_tensor(each) for each in metadata.inputs if not each.optional]}
    body = {"schema": ref("Request"), **_exemplified(metadata, example)}
    return {
        "operationId": model_operation_id("infer", metadata.name),
        "summary": "Run the model",
        "tags": [metadata.name],
        "parameters": [TIMEOUT, EXPLAIN],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {"description": "The outputs", "content": {"application/json": {"schema": ref("Response")}}},
            **errors_of(INFER_ANSWERS),
        },
    }


def _generate(metadata: ModelMetadata, action: str, kind: str) -> dict[str, Any]:
    streams = kind != "application/json"
    example = {each.name: _flat_example(each) for each in metadata.inputs if not each.optional}
    body = {"schema": ref("GenerateRequest"), **_exemplified(metadata, example)}
    response: dict[str, Any] = STRING if streams else {"type": "object", "required": ["model_name", "model_version"]}
    return {
        "operationId": model_operation_id(action, metadata.name),
        "summary": "Run the model on flat JSON" + ("; each response is a server-sent event" if streams else ""),
        "tags": [metadata.name],
        "parameters": [TIMEOUT, EXPLAIN],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {"description": "The outputs", "content": {kind: {"schema": response}}},
            **errors_of(INFER_ANSWERS),
        },
    }


def _request(metadata: ModelMetadata) -> dict[str, Any]:
    required = [each for each in metadata.inputs if not each.optional]
    tensors: dict[str, Any] = {
        "type": "array",
        "items": {"oneOf": [_tensor(each) for each in metadata.inputs]},
        "minItems": len(required),
        "maxItems": len(metadata.inputs),
    }
    names = {"type": "string", "enum": [each.name for each in metadata.outputs]}
    outputs = {"type": "array", "items": object_of(("name",), name=names, parameters=PARAMETERS)}
    return object_of(("inputs",), id=STRING, parameters=PARAMETERS, inputs=tensors, outputs=outputs)


def _response(metadata: ModelMetadata) -> dict[str, Any]:
    outputs = {"type": "array", "items": {"oneOf": [_tensor(each) for each in metadata.outputs]}}
    return object_of(
        ("model_name", "outputs"),
        id=STRING,
        model_name={"const": metadata.name},
        model_version=STRING,
        parameters=PARAMETERS,
        outputs=outputs,
    )


def _flat(metadata: ModelMetadata) -> dict[str, Any]:
    """The object of `generate`: an input is one value or a flat array; further members are parameters."""
    properties = {
        each.name: {"oneOf": [_element(each.datatype), {"type": "array", "items": _element(each.datatype)}]}
        for each in metadata.inputs
    }
    required = [each.name for each in metadata.inputs if not each.optional]
    return {"type": "object", "required": required, "properties": {"id": STRING, **properties}}


def _tensor(tensor: TensorMetadata) -> dict[str, Any]:
    sizes = [{"const": size} if size >= 0 else {"type": "integer", "minimum": 0} for size in tensor.shape]
    shape = {"type": "array", "prefixItems": sizes, "minItems": len(sizes), "maxItems": len(sizes)}
    return object_of(
        ("name", "datatype", "shape"),
        name={"const": tensor.name},
        datatype={"const": tensor.datatype},
        shape=shape,
        data={"type": "array", "description": "flat or nested, in row-major order", "items": _element(tensor.datatype)},
        parameters=PARAMETERS,
    )


def _element(datatype: str) -> dict[str, Any]:
    if datatype in _INTEGERS:
        sign, bits = _INTEGERS[datatype]
        low = 0 if sign else -(2 ** (bits - 1))
        return {"type": "integer", "minimum": low, "maximum": low + 2**bits - 1}
    return {"type": {"BYTES": "string", "BOOL": "boolean"}.get(datatype, "number")}


def _json_carries(metadata: ModelMetadata) -> bool:
    return all(each.datatype not in ("FP16", "BF16") for each in metadata.inputs)


def _exemplified(metadata: ModelMetadata, example: Any) -> dict[str, Any]:
    largest = max((_count(each) for each in metadata.inputs if not each.optional), default=0)
    return {"example": example} if largest <= _LARGEST_EXAMPLE else {}


def _count(tensor: TensorMetadata) -> int:
    return prod(size if size >= 0 else 1 for size in tensor.shape)


def _example_tensor(tensor: TensorMetadata) -> dict[str, Any]:
    shape = [size if size >= 0 else 1 for size in tensor.shape]
    entry: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": shape}
    return entry | {"data": _example_values(tensor.datatype, min(_count(tensor), _LARGEST_EXAMPLE))}


def _flat_example(tensor: TensorMetadata) -> Any:
    values = _example_values(tensor.datatype, min(_count(tensor), _LARGEST_EXAMPLE))
    return values[0] if len(values) == 1 else values


def _example_values(datatype: str, count: int) -> list[Any]:
    """`count` values; those of large tensors are equal."""
    if datatype in ("BYTES", "BOOL"):
        return ["text" if datatype == "BYTES" else True] * count
    one = 1 if datatype in _INTEGERS else 1.0
    return [one * (index + 1 if count <= _COUNTED else 0) for index in range(count)]
