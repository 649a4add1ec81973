"""HTTP/1.1 over plain sockets: requests as the cases want them, however wrong, and answers read to their end."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TIMEOUT = 20.0
NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A status, the fields by lower-case name, and the body."""

    status: int
    fields: Mapping[str, str]
    body: bytes


def connect(port: int, timeout: float = TIMEOUT) -> socket.socket:
    """A connection to this port of the loopback address."""
    connection = socket.create_connection(("127.0.0.1", port), timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def head(method: str, path: str, fields: Mapping[str, str] = NO_HEADERS) -> bytes:
    """A request line and its fields, with `Host`."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\nHost: torture\r\n{lines}\r\n".encode()


def request(method: str, path: str, body: bytes = b"", fields: Mapping[str, str] = NO_HEADERS) -> bytes:
    """A whole request with `Content-Length`."""
    return head(method, path, {"Content-Length": str(len(body)), **fields}) + body


def read_answer(connection: socket.socket) -> HttpAnswer:
    """The next answer. Raises EOFError where the connection ends before it does."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    top, _, body = received.partition(b"\r\n\r\n")
    line, *rest = top.decode("latin-1").split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    status = int(line.split()[1])
    if fields.get("transfer-encoding") == "chunked":
        body = _read_chunks(connection, body)
    elif status != 100:
        length = int(fields.get("content-length", 0))
        parts, size = [body], len(body)
        while size < length:
            parts.append(_more(connection))
            size += len(parts[-1])
        body = b"".join(parts)
    return HttpAnswer(status, fields, body)


def ask(
    port: int,
    method: str,
    path: str,
    body: bytes = b"",
    fields: Mapping[str, str] = NO_HEADERS,
    timeout: float = TIMEOUT,
) -> HttpAnswer:
    """One request on a connection of its own. Raises OSError or EOFError where no whole answer comes."""
    with connect(port, timeout) as connection:
        connection.sendall(request(method, path, body, fields))
        return read_answer(connection)


def infer_path(model: str) -> str:
    return f"/v2/models/{model}/infer"


def tensor(name: str, datatype: str, shape: list[int], content: Any) -> dict[str, Any]:
    """An input with its elements as JSON."""
    return {"name": name, "datatype": datatype, "shape": shape, "data": content}


def json_infer(*inputs: dict[str, Any], **further: Any) -> bytes:
    """The body of an infer request with JSON inputs."""
    return json.dumps({"inputs": list(inputs), **further}).encode()


def binary_infer(name: str, datatype: str, shape: list[int], payload: bytes) -> tuple[bytes, dict[str, str]]:
    """The body and the fields of an infer request with one binary input and binary outputs."""
    parameters = {"binary_data_size": len(payload)}
    text = json.dumps(
        {
            "inputs": [{"name": name, "datatype": datatype, "shape": shape, "parameters": parameters}],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    return text + payload, {"Inference-Header-Content-Length": str(len(text))}


def _read_chunks(connection: socket.socket, received: bytes) -> bytes:
    while not received.endswith(b"0\r\n\r\n"):
        received += _more(connection)
    return received


def _more(connection: socket.socket) -> bytes:
    received = connection.recv(1 << 16)
    if not received:
        raise EOFError("the connection ended before the answer did")
    return received
