"""Parts that the OpenAPI descriptions of the server and of a model share: schemas, headers and errors."""

from collections.abc import Sequence
from typing import Any

from naiad_tensors.datatypes import TENSOR_TYPES

COMMON = {
    400: "the request is wrong",
    404: "no such model, version or path",
    500: "the server or the model failed",
    503: "not now; Retry-After says when to try again",
}
INFER_ANSWERS = COMMON | {501: "not offered", 504: "the deadline of Request-Timeout passed"}


def errors_of(answers: dict[int, str]) -> dict[str, Any]:
    """The responses with these statuses, whose body is an Error."""
    content = {"application/json": {"schema": ref("Error")}}
    return {str(status): {"description": text, "content": content} for status, text in sorted(answers.items())}


def header(name: str, kind: str, description: str) -> dict[str, Any]:
    """An optional header of a request."""
    return {"name": name, "in": "header", "required": False, "schema": {"type": kind}, "description": description}


def ref(name: str) -> dict[str, str]:
    """A reference to the schema of that name."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties."""
    return {"type": "object", "required": list(required), "properties": properties}


TIMEOUT = header("Request-Timeout", "number", "Seconds after which the request is cancelled")
EXPLAIN = header("naiad-explain", "string", "1: answer with the timeline of the request")
LOAD = header("endpoint-load-metrics-format", "string", "The format of the load report: text or json")
STRING = {"type": "string"}
PARAMETERS = {"type": "object", "additionalProperties": {"type": ["string", "integer", "number", "boolean"]}}
_SHAPE = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_DATATYPE = {"type": "string", "enum": sorted(TENSOR_TYPES)}
_TENSOR = object_of(
    ("name", "datatype", "shape"),
    name=STRING,
    datatype=_DATATYPE,
    shape=_SHAPE,
    data={"type": "array", "items": {}},
    parameters=PARAMETERS,
)
SCHEMAS: dict[str, Any] = {
    "Error": object_of(("error",), error=STRING),
    "Tensor": _TENSOR,
    "RequestedOutput": object_of(("name",), name=STRING, parameters=PARAMETERS),
    "InferenceRequest": object_of(
        ("inputs",),
        id=STRING,
        parameters=PARAMETERS,
        inputs={"type": "array", "items": ref("Tensor")},
        outputs={"type": "array", "items": ref("RequestedOutput")},
    ),
    "GenerateRequest": {
        "type": "object",
        "description": "Inputs and parameters by name; an input is one value or a flat array",
        "properties": {"id": STRING, "parameters": {"type": "object"}},
    },
    "GenerateResponse": {
        "type": "object",
        "description": "Outputs and response parameters by name; an output of one element is that element",
        "required": ["model_name", "model_version"],
        "properties": {"id": STRING, "model_name": STRING, "model_version": STRING},
    },
    "InferenceResponse": object_of(
        ("model_name", "outputs"),
        id=STRING,
        model_name=STRING,
        model_version=STRING,
        parameters=PARAMETERS,
        outputs={"type": "array", "items": ref("Tensor")},
    ),
}
