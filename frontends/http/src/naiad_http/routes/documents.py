"""Reader of the JSON objects in administrative requests, which are small and parsed on the event loop."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from naiad_http.bodies import read_body
from naiad_http.codec.documents import as_object, parse
from naiad_http.statuses import HttpError

MAX_BYTES = 65536
"""The maximum size of such a body. The slowest JSON of this size takes about 20 ms to parse, of a megabyte 300 ms."""


async def read_document(request: Request) -> Mapping[str, Any]:
    """The object, {} for an empty body. Raises HttpError 413 above MAX_BYTES, and InvalidArgumentError."""
    body = await read_body(request.receive, MAX_BYTES, _too_large)
    return as_object(parse(body), "request") if body.strip() else {}


def _too_large(size: int, limit: int) -> HttpError:
    return HttpError(
        413, f"the body of {size} bytes exceeds the maximum of {limit} bytes for this path; send only what it documents"
    )
