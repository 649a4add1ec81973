"""Reader of request heads: from the URL and headers of a request to a model."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from urllib.parse import unquote

from naiad.errors import InvalidArgumentError
from naiad.extend import requests_stage
from naiad_http.codec.request_head import RequestHead
from naiad_http.restrictions import Restrictions
from naiad_kit.explaining import EXPLAIN, EXPLAIN_HEADER
from naiad_kit.frontends.forwarding import HeaderForwarding
from naiad_kit.frontends.versions import read_version

ACTION_PATH = re.compile(rb"/v2/models/([^/]+)(?:/versions/([0-9]+))?/(infer|generate|generate_stream)")
"""The routes of inference: groups are the model, the version and the action."""

HeaderList = Sequence[tuple[bytes, bytes]]


class RequestHeadReader:
    """Reads request heads, for one `--http-header-forward-pattern` and the restrictions of the inference API."""

    def __init__(self, forward_pattern: str, restrictions: Restrictions) -> None:
        self._forward = HeaderForwarding(forward_pattern, "--http-header-forward-pattern")
        self._restrictions = restrictions

    def read(self, raw_path: bytes, headers: HeaderList) -> RequestHead | None:
        """The head of a request to that path (still percent-encoded); None if the path is not a route of inference.

        Raises InvalidArgumentError for an invalid header or version, and for a compressed body to an action that
        does not accept one; HttpError 401 or 403 for a restricted API.
        """
        route = ACTION_PATH.fullmatch(raw_path)
        if route is None:
            return None
        lowered = {name.lower(): value for name, value in headers}
        model = unquote(route[1].decode("latin-1"), errors="replace")
        self._restrictions.check("inference", [(name.lower(), value) for name, value in headers], model)
        action = route[3].decode()
        header_length = None
        if action == "infer":
            header_length = _header_length(lowered.get(b"inference-header-content-length"))
        else:
            _refuse_compressed(lowered.get(b"content-encoding", b""), action)
        return RequestHead(
            model_name=model,
            version=read_version(route[2].decode()) if route[2] else 0,
            header_length=header_length,
            timeout=_timeout(lowered.get(b"request-timeout")),
            forwarded=self._forwarded(headers, lowered),
            action=action,
            load_format=lowered.get(b"endpoint-load-metrics-format", b"").decode("latin-1").strip(),
            traceparent=lowered.get(b"traceparent", b"").decode("latin-1").strip(),
            tracestate=_tracestate(headers) if b"tracestate" in lowered else "",
        )

    def _forwarded(self, headers: HeaderList, lowered: Mapping[bytes, bytes]) -> dict[str, str]:
        """The headers that become parameters. Heads are cached, so most requests do not come here."""
        parameters: dict[str, str] = {}
        if self._forward.active:
            secret = self._restrictions.credential_headers(headers)
            parameters = self._forward.of(
                (name.decode("latin-1"), _text(value)) for name, value in headers if name.lower() not in secret
            )
        explain = lowered.get(EXPLAIN_HEADER.encode(), b"").decode("latin-1").strip()
        if requests_stage(explain):
            parameters[EXPLAIN] = explain
        return parameters


def _text(value: bytes) -> str:
    """The text of a header value: UTF-8, or else Latin-1 as old clients send it. Blanks at its end are part of it."""
    try:
        return value.decode().lstrip()
    except UnicodeDecodeError:
        return value.decode("latin-1").lstrip()


def _tracestate(headers: HeaderList) -> str:
    """All headers of that name together: https://www.w3.org/TR/trace-context/#combined-header-value."""
    return ",".join(value.decode("latin-1").strip() for name, value in headers if name.lower() == b"tracestate")


def _header_length(value: bytes | None) -> int | None:
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 20):
        raise InvalidArgumentError(f"Unable to parse Inference-Header-Content-Length, got: {text[:80]}")
    return int(text)


def _refuse_compressed(coding: bytes, action: str) -> None:
    name = coding.strip().lower().decode("latin-1")
    if name not in ("", "identity"):
        raise InvalidArgumentError(
            f"{action} does not accept a compressed body, and Content-Encoding is '{name[:40]}'; send plain JSON"
        )


def _timeout(value: bytes | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not (isfinite(seconds) and seconds > 0):
        raise InvalidArgumentError(
            f"Request-Timeout must be a number of seconds greater than 0, got: {value.decode('latin-1')[:80]}"
        )
    return seconds
