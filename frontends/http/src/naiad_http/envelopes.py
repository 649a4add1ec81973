"""The URL and headers of a request to a model to its envelope."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from urllib.parse import unquote

from naiad.errors import InvalidArgumentError
from naiad.explaining import EXPLAIN, EXPLAIN_HEADER
from naiad_http.codec.envelope import Envelope
from naiad_http.restrictions import Restrictions
from naiad_kit.frontends.forwarding import HeaderForwarding
from naiad_kit.frontends.versions import read_version

ACTION_PATH = re.compile(rb"/v2/models/([^/]+)(?:/versions/([0-9]+))?/(infer|generate|generate_stream)")
"""The routes of inference: groups are the model, the version and the action."""

HeaderList = Sequence[tuple[bytes, bytes]]


class EnvelopeReader:
    """Reads envelopes, for one `--http-header-forward-pattern` and the restrictions of the inference API."""

    def __init__(self, forward_pattern: str, restrictions: Restrictions) -> None:
        self._forward = HeaderForwarding(forward_pattern, "--http-header-forward-pattern")
        self._restrictions = restrictions

    def read(self, raw_path: bytes, headers: HeaderList) -> Envelope | None:
        """The envelope of a request to that path (still percent-encoded); None when that is no route of inference.

        Raises InvalidArgumentError for a header or version that makes no sense, and for a compressed body to an action
        that takes none; HttpError 403 for a restricted API.
        """
        found = ACTION_PATH.fullmatch(raw_path)
        if found is None:
            return None
        lowered = {name.lower(): value for name, value in headers}
        self._restrictions.check("inference", [(name.lower(), value) for name, value in headers])
        action = found[3].decode()
        header_length = None
        if action == "infer":
            header_length = _header_length(lowered.get(b"inference-header-content-length"))
        else:
            _refuse_compressed(lowered.get(b"content-encoding", b""), action)
        return Envelope(
            model_name=unquote(found[1].decode("latin-1"), errors="replace"),
            version=read_version(found[2].decode()) if found[2] else 0,
            header_length=header_length,
            timeout=_timeout(lowered.get(b"request-timeout")),
            forwarded=self._forwarded(headers, lowered),
            action=action,
            load_format=lowered.get(b"endpoint-load-metrics-format", b"").decode("latin-1").strip(),
            traceparent=lowered.get(b"traceparent", b"").decode("latin-1").strip(),
            tracestate=_tracestate(headers) if b"tracestate" in lowered else "",
        )

    def _forwarded(self, headers: HeaderList, lowered: Mapping[bytes, bytes]) -> dict[str, str]:
        """What headers say that becomes a parameter; heads are remembered, so that most requests do not come here."""
        given: dict[str, str] = {}
        if self._forward.active:
            given = self._forward.of((name.decode("latin-1"), _told(value)) for name, value in headers)
        asked = lowered.get(EXPLAIN_HEADER.encode())
        if asked is not None:
            given[EXPLAIN] = asked.decode("latin-1").strip()
        return given


def _told(value: bytes) -> str:
    """What a header says: UTF-8 as clients write it, or each byte a letter, as old ones did."""
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return value.decode("latin-1").strip()


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
    told = coding.strip().lower().decode("latin-1")
    if told not in ("", "identity"):
        raise InvalidArgumentError(
            f"{action} takes no compressed body, and Content-Encoding is '{told[:40]}'; send the JSON as it is"
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
