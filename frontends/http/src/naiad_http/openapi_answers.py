"""OpenAPI schemas of what operations other than inference answer with, chosen by their paths."""

import re
from typing import Any

from naiad_http.openapi_schemas import STRING, object_of, ref

_COUNT = {"type": "integer", "minimum": 0}
_YES_OR_NO = {"type": "boolean"}
_DURATION = object_of(("count", "ns"), count=_COUNT, ns=_COUNT)
_TENSORS = {
    "type": "array",
    "items": object_of(
        ("name", "datatype", "shape"),
        name=STRING,
        datatype=STRING,
        shape={"type": "array", "items": {"type": "integer", "minimum": -1}},
    ),
}
_BATCH = object_of(
    ("batch_size", "compute_input", "compute_infer", "compute_output"),
    batch_size=_COUNT,
    compute_input=_DURATION,
    compute_infer=_DURATION,
    compute_output=_DURATION,
)
_VERSION = object_of(
    ("name", "version", "inference_count", "execution_count", "inference_stats", "batch_stats"),
    name=STRING,
    version=STRING,
    last_inference=_COUNT,
    inference_count=_COUNT,
    execution_count=_COUNT,
    inference_stats={"type": "object", "additionalProperties": _DURATION},
    batch_stats={"type": "array", "items": _BATCH},
)
_TEXTS = {"type": "array", "items": STRING}
_ENTRY = object_of(("name",), name=STRING, version=STRING, state=STRING, reason=STRING)
_REGION = object_of(("name", "byte_size"), name=STRING, key=STRING, offset=_COUNT, device_id=_COUNT, byte_size=_COUNT)
ANSWERS: dict[str, Any] = {
    "ServerLive": object_of(("live",), live=_YES_OR_NO),
    "ServerReady": object_of(("ready",), ready=_YES_OR_NO),
    "ModelReady": object_of(("name", "ready"), name=STRING, ready=_YES_OR_NO),
    "ServerMetadata": object_of(("name", "version", "extensions"), name=STRING, version=STRING, extensions=_TEXTS),
    "ModelMetadata": object_of(
        ("name", "versions", "platform", "inputs", "outputs"),
        name=STRING,
        versions=_TEXTS,
        platform=STRING,
        inputs=_TENSORS,
        outputs=_TENSORS,
    ),
    "ModelConfig": {"type": "object", "description": "Triton's message ModelConfig as JSON", "required": ["name"]},
    "Statistics": object_of(("model_stats",), model_stats={"type": "array", "items": _VERSION}),
    "RepositoryIndex": {"type": "array", "items": _ENTRY},
    "TraceSettings": {"type": "object", "additionalProperties": {"oneOf": [STRING, _TEXTS]}},
    "LogSettings": {"type": "object", "additionalProperties": {"type": ["boolean", "integer", "string"]}},
    "SharedMemoryRegions": {"type": "array", "items": _REGION},
    "Description": {"type": "object", "description": "A document of OpenAPI", "required": ["openapi"]},
    "Root": object_of(("name", "version"), name=STRING, version=STRING, docs=STRING, openapi=STRING),
}
"""The schemas by name."""

_BY_PATH = (
    (r"/v2", "ServerMetadata"),
    (r"/v2/health/live", "ServerLive"),
    (r"/v2/health/ready", "ServerReady"),
    (r"/v2/models/stats", "Statistics"),
    (r"/v2/models/[^/]+(/versions/[^/]+)?", "ModelMetadata"),
    (r".*/ready", "ModelReady"),
    (r".*/config", "ModelConfig"),
    (r".*/stats", "Statistics"),
    (r".*/index", "RepositoryIndex"),
    (r".*/trace/setting", "TraceSettings"),
    (r"/v2/logging", "LogSettings"),
    (r".*/status", "SharedMemoryRegions"),
    (r".*/openapi\.json", "Description"),
    (r"/", "Root"),
)
_PAGES = re.compile(r"/|/docs(/.*)?")


def success_of(path: str) -> dict[str, Any]:
    """The response 200 of an operation; without content where the answer has no body."""
    name = next((name for pattern, name in _BY_PATH if re.fullmatch(pattern, path)), "")
    content: dict[str, Any] = {"application/json": {"schema": ref(name)}} if name else {}
    if _PAGES.fullmatch(path):
        content["text/html"] = {"schema": STRING}
    return {"description": "Success", **({"content": content} if content else {})}
