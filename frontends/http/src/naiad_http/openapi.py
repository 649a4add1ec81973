"""OpenAPI description of the frontend, generated from the table of its operations."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from naiad import __version__
from naiad_http.openapi_answers import ANSWERS, success_of
from naiad_http.openapi_schemas import (
    COMMON,
    EXPLAIN,
    INFER_ANSWERS,
    LOAD,
    SCHEMAS,
    STRING,
    TIMEOUT,
    errors_of,
    header,
    ref,
)

if TYPE_CHECKING:
    from naiad_http.routes.operations import Operation

_MODELS = ("/v2/models/{model}", "/v2/models/{model}/versions/{version}")
_INFER_PATHS = tuple(f"{model}/infer" for model in _MODELS)
_GENERATE_PATHS = tuple(f"{model}/generate" for model in _MODELS)
_STREAM_PATHS = tuple(f"{model}/generate_stream" for model in _MODELS)
INFERENCE_PATHS = (*_INFER_PATHS, *_GENERATE_PATHS, *_STREAM_PATHS)
"""The routes of inference, which starlette does not serve."""

_HEALTH_PATHS = ("/v2/health/live", "/v2/health/ready")
"""Here 400 is an answer, and no error."""


def describe(operations: Sequence["Operation"]) -> dict[str, Any]:
    """The description as a JSON document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = operation.path.replace(":text}", "}")
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
        "components": {"schemas": SCHEMAS | ANSWERS},
    }


def operation_id(method: str, path: str) -> str:
    """The id of an operation: `get_v2_models_model_config`. Unique for each method and path."""
    return re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_")


def _operation(path: str, operation: "Operation") -> dict[str, Any]:
    responses = {"200": success_of(path), **errors_of(COMMON | dict(operation.answers))}
    if path in _HEALTH_PATHS:
        responses["400"]["content"] = responses["200"]["content"]
    described: dict[str, Any] = {
        "operationId": operation_id(operation.method, path),
        "summary": operation.summary,
        "tags": [operation.api],
        "parameters": _variables(path),
        "responses": responses,
    }
    if operation.method == "POST":
        described["requestBody"] = {"required": False, "content": {"application/json": {"schema": {"type": "object"}}}}
    return described


def _infer(path: str) -> dict[str, Any]:
    headers = [
        header(
            "Inference-Header-Content-Length", "integer", "How many bytes of the body are JSON; the rest are tensors"
        ),
        TIMEOUT,
        EXPLAIN,
    ]
    return {
        "operationId": operation_id("POST", path),
        "summary": "Run a model",
        "tags": ["inference"],
        "parameters": [*_variables(path), *headers],
        "requestBody": {"required": True, "content": _content("InferenceRequest")},
        "responses": {
            "200": {"description": "The outputs", "content": _content("InferenceResponse")},
            **errors_of(INFER_ANSWERS),
        },
    }


def _generate(path: str, summary: str, kind: str) -> dict[str, Any]:
    """`kind` is the media type of the response; an event of a stream holds one GenerateResponse."""
    body = {"schema": ref("GenerateRequest")}
    response = {"schema": ref("GenerateResponse") if kind == "application/json" else STRING}
    return {
        "operationId": operation_id("POST", path),
        "summary": summary,
        "tags": ["inference"],
        "parameters": [*_variables(path), TIMEOUT, LOAD, EXPLAIN],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {"description": "The outputs", "content": {kind: response}},
            **errors_of(INFER_ANSWERS),
        },
    }


def _content(schema: str) -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {"application/json": {"schema": ref(schema)}, "application/octet-stream": binary}


def _variables(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("repository", "model", "version", "region")
        if f"{{{name}}}" in path
    ]
