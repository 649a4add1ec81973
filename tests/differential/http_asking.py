"""HTTP requests as bytes on a plain socket, so that malformed ones can be sent too."""

import http.client
import io
import json
import socket
import zlib
from collections.abc import Mapping
from typing import Any

from .answers import CLOSED, GONE, Answer, Case, Ports

PATIENCE = 5.0
"""Seconds after which an answer counts as none."""

_PATIENCE_WITH_LOADS = 60.0
"""The same where a model is loaded or unloaded, for which a server may have to start processes."""

_LOOKED_AT = ("content-type", "content-encoding", "accept-encoding")
_LENGTH = "inference-header-content-length"

Body = bytes | Mapping[str, Any] | list[Any] | None


def http_case(
    key: str,
    method: str,
    path: str,
    body: Body = None,
    headers: Mapping[str, str] | None = None,
    any_value: tuple[str, ...] = (),
) -> Case:
    """A well-formed request; a mapping or list is sent as JSON, and `None` as no body."""
    return bytes_case(key, request(method, path, body, headers), any_value)


def bytes_case(key: str, content: bytes, any_value: tuple[str, ...] = ()) -> Case:
    """Bytes as they are, on a connection of their own."""
    return Case(key, lambda ports: ask(ports, content), any_value)


def request(method: str, path: str, body: Body = None, headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a request; a header given here replaces the one that would be right."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = (
        {"Host": "localhost"} | ({} if body is None else {"Content-Length": str(len(content))}) | dict(headers or {})
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


def ask(ports: Ports, content: bytes) -> Answer:
    """Send the bytes and read one answer."""
    try:
        patience = _PATIENCE_WITH_LOADS if b"/v2/repository/models/" in content[:40] else PATIENCE
        connection = socket.create_connection(("127.0.0.1", ports.http), timeout=patience)
    except ConnectionRefusedError:
        return Answer(GONE)
    with connection:
        try:
            connection.sendall(content)
        except ConnectionError:
            return Answer(CLOSED)
        return read_answer(Reader(connection), content)


class Reader(io.BufferedReader):
    """What comes on a connection, answer after answer: `http.client` would close after each what it reads from."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(socket.SocketIO(connection, "r"))  # type: ignore[arg-type]

    def makefile(self, _mode: str) -> "Reader":
        """Itself, as the file that `http.client` asks a socket for."""
        return self

    def close(self) -> None:
        """Stay open."""


def read_answer(reader: Reader, content: bytes) -> Answer:
    """The next answer on a connection on which those bytes were sent."""
    try:
        return _read(reader, content.split(b" ", 1)[0].decode("latin-1"))
    except TimeoutError:
        return Answer("no answer")
    except (ConnectionError, http.client.HTTPException):
        return Answer(CLOSED)


def _read(reader: Reader, method: str) -> Answer:
    response = http.client.HTTPResponse(reader, method=method)  # type: ignore[arg-type]
    response.begin()
    body = response.read()
    headers = {name.lower(): value for name, value in response.getheaders()}
    kept = {name: headers[name] for name in _LOOKED_AT if name in headers}
    if headers.get("content-encoding") in ("gzip", "deflate"):
        body = zlib.decompress(body, 47)  # 32 + 15: gzip or zlib by its header
    document, content = _parted(body, headers.get(_LENGTH), headers.get("content-type", ""))
    return Answer(str(response.status), kept | ({_LENGTH: "given"} if _LENGTH in headers else {}), document, content)


def _parted(body: bytes, length: str | None, content_type: str) -> tuple[Any, bytes]:
    """The JSON of a body and what is not JSON."""
    if length is not None:
        return json.loads(body[: int(length)]), body[int(length) :]
    if content_type.startswith("text/event-stream"):
        return _events(body), b""
    try:
        return json.loads(body), b""
    except ValueError:
        return None, body


def _events(body: bytes) -> list[Any]:
    """The documents of server-sent events, and in words what is not a such event."""
    parts = io.TextIOWrapper(io.BytesIO(body), "utf-8").read().split("\n\n")
    return [json.loads(part.removeprefix("data: ")) if part.startswith("data: ") else part for part in parts]
