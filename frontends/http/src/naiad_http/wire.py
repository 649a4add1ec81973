"""Serialisation of HTTP/1.1 responses."""

from collections.abc import Sequence

from naiad_http.codec import Encoded
from naiad_http.statuses import Headers, HttpResponse, phrase
from naiad_kit.buffers import Buffer

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
EVENT_HEADERS: Headers = (
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("Cache-Control", "no-cache"),
    ("X-Accel-Buffering", "no"),
)
"""Headers of event streams; the last two keep caches and reverse proxies from holding events back."""
_CLOSE = b"Connection: close\r\n"
_FEW_BYTES = 4 << 10
"""To copy so many bytes takes less time than a system call for several buffers."""


def success(encoded: Encoded, date: bytes, keep_alive: bool) -> Sequence[Buffer]:
    """The head and body of a 200, as buffers to write one after the other; `date` is a header line or empty."""
    text = encoded.text
    close = b"" if keep_alive else _CLOSE
    if encoded.size:
        head = (
            b"HTTP/1.1 200 OK\r\n%bContent-Type: application/octet-stream\r\n"
            b"Inference-Header-Content-Length: %d\r\nContent-Length: %d\r\n%b\r\n%b"
        ) % (date, len(text), len(text) + encoded.size, close, text)
        if encoded.size <= _FEW_BYTES:
            return (b"".join((head, *encoded.buffers)),)
        return (head, *encoded.buffers)
    return (
        b"HTTP/1.1 200 OK\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b"
        % (date, len(text), close, text),
    )


def whole(response: HttpResponse, date: bytes, keep_alive: bool, has_body: bool = True) -> bytes:
    """The head and body of any response; the head alone, with the size of the body, answers a HEAD request."""
    return b"HTTP/1.1 %d %b\r\n%b%bContent-Length: %d\r\n%b\r\n%b" % (
        response.status,
        phrase(response.status).encode(),
        date,
        _lines(response.headers),
        len(response.body),
        b"" if keep_alive else _CLOSE,
        response.body if has_body else b"",
    )


def event_stream(headers: Headers, date: bytes, chunked: bool, keep_alive: bool) -> bytes:
    """The head of a stream of events; one that is not chunked lasts until the connection is closed."""
    return b"HTTP/1.1 200 OK\r\n%b%b%b%b\r\n" % (
        date,
        _lines(EVENT_HEADERS + headers),
        b"Transfer-Encoding: chunked\r\n" if chunked else b"",
        b"" if keep_alive else _CLOSE,
    )


def _lines(headers: Headers) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1", "replace")
