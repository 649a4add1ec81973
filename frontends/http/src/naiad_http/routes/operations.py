"""Operation of the protocol: method, path, endpoint and description of a route."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from naiad_http.statuses import HttpError
from naiad_kit.frontends.versions import read_version

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the protocol.

    `path` has its variables in braces, as starlette and OpenAPI both write them; `api` is the group that
    `--http-restricted-api` names. `answers` is the meaning of each status, except 200 and the common ones.
    """

    method: str
    path: str
    api: str
    summary: str
    endpoint: Endpoint
    answers: Mapping[int, str] = field(default_factory=dict)


def as_json(value: Any, status: int = 200) -> Response:
    """An answer with a JSON document."""
    return Response(orjson.dumps(value), status, media_type="application/json")


def model_of(request: Request) -> tuple[str, int]:
    """The model and version (0: unspecified) of the path. Raises HttpError 404 for a version that is not a number."""
    text = request.path_params.get("version", "")
    if text and not (text.isascii() and text.isdigit()):
        raise HttpError(404, "Not Found")
    return request.path_params["model"], read_version(text) if text else 0
