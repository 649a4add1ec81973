"""OpenAPI description of the frontend, generated from the table of its operations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from naiad import __version__
from naiad_tensors.datatypes import TENSOR_TYPES

if TYPE_CHECKING:
    from naiad_http.routes.operations import Operation

_MODELS = ("/v2/models/{model}", "/v2/models/{model}/versions/{version}")
_INFER_PATHS = tuple(f"{model}/infer" for model in _MODELS)
_GENERATE_PATHS = tuple(f"{model}/generate" for model in _MODELS)
_STREAM_PATHS = tuple(f"{model}/generate_stream" for model in _MODELS)
INFERENCE_PATHS = (*_INFER_PATHS, *_GENERATE_PATHS, *_STREAM_PATHS)
"""The routes of inference, which starlette does not serve."""

_COMMON = {
    400: "the request is wrong",
    404: "no such model, version or path",
    500: "the server or the model failed",
    503: "not now; Retry-After says when to try again",
}
_INFER_ANSWERS = _COMMON | {501: "not offered", 504: "the deadline of Request-Timeout passed"}


def describe(operations: Sequence["Operation"]) -> dict[str, Any]:
    """The description as a JSON document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = operation.path.replace(":path}", "}")
        paths.setdefault(path, {})[operation.method.lower()] = _operation(path, operation)
    for path in _INFER_PATHS:
        paths[path] = {"post": _infer(path)}
    for path in _GENERATE_PATHS:
        summary = "Run a model on flat JSON; it answers with one response"
        paths[path] = {"post": _generate(path, summary, "application/json")}
    for path in _STREAM_PATHS:
        summary = "Run a model on flat JSON; each of its responses is a server-sent event"
        paths[path] = {"post": _generate(path, summary, "text/event-stream")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Naiad",
            "version": __version__,
            "description": "The Open Inference Protocol (KServe v2) with the extensions of Triton Inference Server",
        },
        "paths": paths,
        "components": {"schemas": _SCHEMAS},
    }


def _operation(path: str, operation: "Operation") -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "tags": [operation.api],
        "parameters": _variables(path),
        "responses": {"200": {"description": "Success"}, **_errors(_COMMON | dict(operation.answers))},
    }
    if operation.method == "POST":
        described["requestBody"] = {"required": False, "content": {"application/json": {"schema": {"type": "object"}}}}
    return described


def _infer(path: str) -> dict[str, Any]:
    headers = [
        _header(
            "Inference-Header-Content-Length", "integer", "How many bytes of the body are JSON; the rest are tensors"
        ),
        _TIMEOUT,
        _EXPLAIN,
    ]
    return {
        "summary": "Run a model",
        "tags": ["inference"],
        "parameters": [*_variables(path), *headers],
        "requestBody": {"required": True, "content": _content("InferenceRequest")},
        "responses": {
            "200": {"description": "The outputs", "content": _content("InferenceResponse")},
            **_errors(_INFER_ANSWERS),
        },
    }


def _generate(path: str, summary: str, kind: str) -> dict[str, Any]:
    """`kind` is the media type of the response; an event of a stream holds one GenerateResponse."""
    body = {"schema": _ref("GenerateRequest")}
    response = {"schema": _ref("GenerateResponse") if kind == "application/json" else _STRING}
    return {
        "summary": summary,
        "tags": ["inference"],
        "parameters": [*_variables(path), _TIMEOUT, _LOAD, _EXPLAIN],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {"description": "The outputs", "content": {kind: response}},
            **_errors(_INFER_ANSWERS),
        },
    }


def _content(schema: str) -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {"application/json": {"schema": _ref(schema)}, "application/octet-stream": binary}


def _errors(answers: dict[int, str]) -> dict[str, Any]:
    content = {"application/json": {"schema": _ref("Error")}}
    return {str(status): {"description": text, "content": content} for status, text in sorted(answers.items())}


def _variables(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("repository", "model", "version", "region")
        if f"{{{name}}}" in path
    ]


def _header(name: str, kind: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": {"type": kind}, "description": description}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


_TIMEOUT = _header("Request-Timeout", "number", "Seconds after which the request is cancelled")
_EXPLAIN = _header("naiad-explain", "string", "1: answer with the timeline of the request")
_LOAD = _header("endpoint-load-metrics-format", "string", "The format of the load report: text or json")
_STRING = {"type": "string"}
_PARAMETERS = {"type": "object", "additionalProperties": {"type": ["string", "integer", "number", "boolean"]}}
_SHAPE = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_DATATYPE = {"type": "string", "enum": sorted(TENSOR_TYPES)}
_TENSOR = _object(
    ("name", "datatype", "shape"),
    name=_STRING,
    datatype=_DATATYPE,
    shape=_SHAPE,
    data={"type": "array", "items": {}},
    parameters=_PARAMETERS,
)
_SCHEMAS: dict[str, Any] = {
    "Error": _object(("error",), error=_STRING),
    "Tensor": _TENSOR,
    "RequestedOutput": _object(("name",), name=_STRING, parameters=_PARAMETERS),
    "InferenceRequest": _object(
        ("inputs",),
        id=_STRING,
        parameters=_PARAMETERS,
        inputs={"type": "array", "items": _ref("Tensor")},
        outputs={"type": "array", "items": _ref("RequestedOutput")},
    ),
    "GenerateRequest": {
        "type": "object",
        "description": "Inputs and parameters by name; an input is one value or a flat array",
        "properties": {"id": _STRING, "parameters": {"type": "object"}},
    },
    "GenerateResponse": {
        "type": "object",
        "description": "Outputs and response parameters by name; an output of one element is that element",
        "required": ["model_name", "model_version"],
        "properties": {"id": _STRING, "model_name": _STRING, "model_version": _STRING},
    },
    "InferenceResponse": _object(
        ("model_name", "outputs"),
        id=_STRING,
        model_name=_STRING,
        model_version=_STRING,
        parameters=_PARAMETERS,
        outputs={"type": "array", "items": _ref("Tensor")},
    ),
}
