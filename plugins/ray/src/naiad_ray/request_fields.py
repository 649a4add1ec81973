"""Fields of a raw request (its model, sequence and subject), read from its path or first bytes without its tensors."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard
from urllib.parse import unquote

from naiad_ray.raw import GrpcRequest, HttpRequest

_MODEL = re.compile(rb"/v2/models/([^/]+)(?:/.*)?")
_CONTROL = re.compile(rb"/v2/repository/models/(.+)/(?:load|unload)")
_INFER = re.compile(rb"/v2/models/[^/]+(?:/versions/[0-9]+)?/infer")

_FIELD_OF_MODEL: Mapping[str, int] = {
    "ModelInfer": 1,
    "ModelStreamInfer": 1,
    "ModelReady": 1,
    "ModelMetadata": 1,
    "ModelConfig": 1,
    "ModelStatistics": 1,
    "RepositoryModelLoad": 2,
    "RepositoryModelUnload": 2,
    "TraceSetting": 2,
}
"""The field of each RPC's request that has the model's name (grpc_service.proto of the protocol)."""

_PARAMETERS = 4
"""The field `parameters` of ModelInferRequest, a map."""
_MOST_FIELDS, _MOST_IN_ENTRY = 4096, 16
"""How many fields of a message, and of an entry of a map in it, are read: reading a field takes a microsecond."""
MOST_DECOMPRESSED = 1 << 20
"""How many bytes of a compressed body are read."""
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class SequenceMark:
    """The sequence of a request: its correlation id as text, and whether the request starts or ends it."""

    id: str
    start: bool
    end: bool


def model_of_path(path: bytes) -> str:
    """The model that an HTTP path is about, "" for none."""
    if path == b"/v2/models/stats":
        return ""
    match = _MODEL.fullmatch(path) or _CONTROL.fullmatch(path)
    return unquote(match[1].decode("latin-1"), errors="replace") if match else ""


def controls_model(path: bytes) -> bool:
    """Whether an HTTP path loads or unloads a model."""
    return _CONTROL.fullmatch(path) is not None


def model_of_message(method: str, message: bytes) -> str:
    """The model that a call of an RPC is about, "" for none, or if the message is not valid."""
    number = _FIELD_OF_MODEL.get(method)
    if number is None:
        return ""
    for field, value in _fields(message):
        if field == number and isinstance(value, memoryview):
            return bytes(value).decode("utf-8", "replace")
    return ""


def sequence_of(request: HttpRequest | GrpcRequest) -> SequenceMark | None:
    """The sequence that an inference request belongs to, None for most."""
    if isinstance(request, GrpcRequest):
        return _mark(_grpc_parameters(request.message))
    if not _INFER.fullmatch(request.path):
        return None
    headers = {name.lower(): value for name, value in request.headers}
    length = headers.get(b"inference-header-content-length", b"")
    text = _content(request)
    if length.isdigit() and len(length) <= 18:
        text = text[: int(length)]
    if b'"sequence_id"' not in text:
        return None
    parameters = _document(text).get("parameters")
    return _mark(parameters) if isinstance(parameters, dict) else None


def _content(request: HttpRequest) -> bytes:
    """A body, or the first MOST_DECOMPRESSED bytes of a compressed one; b"" if it is not valid gzip or zlib."""
    codings = [value.strip().lower() for name, value in request.headers if name.lower() == b"content-encoding"]
    if not codings or codings[-1] in (b"", b"identity"):
        return request.body
    try:
        return zlib.decompressobj(32 + zlib.MAX_WBITS).decompress(request.body, MOST_DECOMPRESSED)
    except zlib.error:
        return b""


def _document(text: bytes) -> dict[str, Any]:
    """The members of a JSON object, none if the text is no such."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _mark(parameters: Mapping[str, Any]) -> SequenceMark | None:
    identity = parameters.get("sequence_id", 0)
    if identity in (0, ""):
        return None
    return SequenceMark(str(identity), bool(parameters.get("sequence_start")), bool(parameters.get("sequence_end")))


def _grpc_parameters(message: bytes) -> dict[str, Any]:
    """The parameters of a ModelInferRequest whose names start with `sequence_`."""
    parameters: dict[str, Any] = {}
    for field, value in _fields(message):
        if field == _PARAMETERS and isinstance(value, memoryview):
            entry = dict(_fields(value, _MOST_IN_ENTRY))
            name = entry.get(1)
            key = bytes(name).decode("utf-8", "replace") if isinstance(name, memoryview) else ""
            content = entry.get(2)
            if key.startswith("sequence_") and isinstance(content, memoryview):
                for chosen in dict(_fields(content, _MOST_IN_ENTRY)).values():
                    parameters[key] = (
                        bytes(chosen).decode("utf-8", "replace") if isinstance(chosen, memoryview) else chosen
                    )
    return parameters


def _fields(message: bytes | memoryview, most: int = _MOST_FIELDS) -> Iterator[tuple[int, int | memoryview]]:
    """The first fields of a protobuf message with their varints or bytes, up to the first that is not valid.

    https://protobuf.dev/programming-guides/encoding
    """
    view, at = memoryview(message), 0
    try:
        for _ in range(most):
            if at == len(view):
                return
            tag, at = _varint(view, at)
            wire = tag & 7
            if wire == _VARINT:
                number, at = _varint(view, at)
                yield tag >> 3, number
            elif wire == _LENGTH:
                size, at = _varint(view, at)
                if at + size > len(view):
                    return
                yield tag >> 3, view[at : at + size]
                at += size
            elif wire in (_FIXED64, _FIXED32):
                at += 8 if wire == _FIXED64 else 4
            else:
                return
    except IndexError:
        return


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise IndexError(at)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a request is about: its model ("" for none), and what must happen with it beside the models' own server.

    `action` is `order` (all replicas must carry it out; `key` is what a later order of the same kind replaces),
    `report` (`about` all replicas), `any` (any replica of the first group answers), or "" for none of them.
    """

    model: str = ""
    action: Literal["", "order", "report", "any"] = ""
    key: str = ""
    about: Literal["statistics", "index", "readiness"] = "index"
    version: int = 0


_STATISTICS = re.compile(rb"/v2/models/(?:stats|[^/]+(?:/versions/([0-9]{1,18}))?/stats)")
_SETTINGS = re.compile(rb"/v2/(?:logging|(?:models/[^/]+/)?trace/setting)")
_INDEX = re.compile(rb"/v2/repository/(?:[^/]+/)?index")


def subject_of(request: HttpRequest | GrpcRequest) -> Subject:
    """What a request is about."""
    if isinstance(request, GrpcRequest):
        return _subject_of_call(request.path.rpartition("/")[2], request.message)
    path, model = request.path, model_of_path(request.path)
    if controls_model(path) and request.method == "POST":
        return Subject(model, "order", f"model {model}")
    if _SETTINGS.fullmatch(path):
        if request.method == "POST":
            names = _document(_content(request))
            return Subject(model, "order", _key("log" if path == b"/v2/logging" else "trace", model, names))
        return Subject(model, "any")
    if match := _STATISTICS.fullmatch(path):
        return Subject(model, "report", about="statistics", version=int(match[1] or 0))
    if _INDEX.fullmatch(path):
        return Subject("", "report", about="index")
    if path == b"/v2/health/ready":
        return Subject("", "report", about="readiness")
    return Subject(model)


def _subject_of_call(method: str, message: bytes) -> Subject:
    model = model_of_message(method, message)
    match method:
        case "RepositoryModelLoad" | "RepositoryModelUnload":
            return Subject(model, "order", f"model {model}")
        case "TraceSetting" | "LogSettings":
            entries = [
                dict(_fields(value, _MOST_IN_ENTRY))
                for field, value in _fields(message)
                if field == 1 and _is_bytes(value)
            ]
            if entries:
                names = [bytes(each[1]).decode("utf-8", "replace") for each in entries if _is_bytes(each.get(1, 0))]
                return Subject(model, "order", _key("trace" if method == "TraceSetting" else "log", model, names))
            return Subject(model, "any")
        case "ModelStatistics":
            version = next((bytes(value) for field, value in _fields(message) if field == 2 and _is_bytes(value)), b"")
            valid = version.isdigit() and len(version) <= 18
            return Subject(model, "report", about="statistics", version=int(version) if valid else 0)
        case "RepositoryIndex":
            return Subject("", "report", about="index")
        case "ServerReady" | "Check":
            return Subject("", "report", about="readiness")
    return Subject(model)


def _key(kind: Literal["log", "trace"], model: str, names: Iterable[str]) -> str:
    """The key of an order: a later change of the same settings replaces it, one of other settings does not."""
    return f"{kind} settings of '{model}': {', '.join(sorted(set(names)))}"


def _is_bytes(value: int | memoryview) -> TypeGuard[memoryview]:
    return isinstance(value, memoryview)
