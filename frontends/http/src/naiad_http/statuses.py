"""HTTP statuses of errors, and the response to an error."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from types import MappingProxyType

import orjson

from naiad import errors
from naiad.types import Response
from naiad_kit.frontends.failures import FailureLog
from naiad_kit.frontends.request_ids import with_request_id

_log = logging.getLogger("naiad.http")
_failures = FailureLog("HTTP", _log)
Outcome = Response | errors.NaiadError
"""What the server delivers for a request: a response, or the error that ends it."""

STATUSES: Mapping[type[errors.NaiadError], int] = MappingProxyType(
    {
        errors.NaiadError: 500,
        errors.InvalidArgumentError: 400,
        errors.ConfigError: 400,
        errors.UsageError: 400,
        errors.TooLargeError: 400,
        errors.NotFoundError: 404,
        errors.AlreadyExistsError: 400,
        errors.UnavailableError: 503,
        errors.ModelNotReadyError: 503,
        errors.QueueFullError: 503,
        errors.QueueTimeoutError: 503,
        errors.CallRingError: 503,
        errors.ShuttingDownError: 503,
        errors.DeadlineExceededError: 504,
        errors.RequestCancelledError: 499,
        errors.UnsupportedError: 501,
        errors.UnknownError: 500,
        errors.InternalError: 500,
        errors.ModelFailedError: 500,
        errors.WorkerDiedError: 500,
        errors.PluginError: 500,
    }
)
"""The status of every error: 4xx is the client's fault, 5xx ours. A class not listed has that of its nearest parent."""

_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {499: "Client Closed Request"}
_RETRY_SECONDS = 1
"""The `Retry-After` of an error that has none of its own."""

Headers = tuple[tuple[str, str], ...]


NOT_FOUND = "Not Found: models are at /v2/models/NAME/infer, and GET /openapi.json lists every path"
"""The message for a path that no route has."""


class HttpError(Exception):
    """An error of the HTTP layer: a status, a message and the headers that belong to them."""

    def __init__(self, status: int, message: str, headers: Headers = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


def not_allowed(methods: Iterable[str]) -> HttpError:
    """The 405 of a path that has only these methods; GET implies HEAD."""
    names = set(methods)
    names |= {"HEAD"} if "GET" in names else set()
    listed = ", ".join(sorted(names))
    return HttpError(405, f"Method Not Allowed: use {listed.replace(', ', ' or ')}", (("Allow", listed),))


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response without the headers that concern the connection."""

    status: int
    body: bytes = b""
    headers: Headers = ()


def phrase(status: int) -> str:
    """The reason phrase of a status, "" for one that has none."""
    return _PHRASES.get(status, "")


def status_of(error: errors.NaiadError) -> int:
    """The HTTP status of an error: that of its class, or of the nearest base class in `STATUSES`."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def error_response(error: errors.NaiadError | HttpError, request_id: str = "") -> HttpResponse:
    """The response to an error: its status and `{"error": message}`, see `with_request_id` for its id."""
    message = with_request_id(str(error), request_id).encode("utf-8", "replace").decode()
    status = error.status if isinstance(error, HttpError) else status_of(error)
    _failures.record(error, status, message, request_id)
    body = orjson.dumps({"error": message})
    headers: Headers = (("Content-Type", "application/json"),)
    if isinstance(error, HttpError):
        return HttpResponse(status, body, headers + error.headers)
    if isinstance(error, errors.UnavailableError):
        seconds = _RETRY_SECONDS if error.retry_after is None else max(1, ceil(error.retry_after))
        headers = (*headers, ("Retry-After", str(seconds)))
    return HttpResponse(status, body, headers)


def unexpected(error: Exception, request_id: str = "") -> HttpResponse:
    """The response to an unexpected error of ours: its traceback goes to the log, never to the caller."""
    if isinstance(error, errors.NaiadError | HttpError):
        return error_response(error, request_id)
    _log.error("unexpected error while answering a request", exc_info=error)
    answer = errors.InternalError("the server failed to answer; its log tells why")
    answer.logged = True
    return error_response(answer, request_id)
