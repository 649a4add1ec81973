"""ASGI cycle: one complete request to the ASGI application, and its response on the connection."""

import asyncio
import logging
import re
from collections.abc import Callable, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp

from naiad_http.heads import HttpHead
from naiad_http.incoming import Message
from naiad_kit.buffers import Buffer

REQUEST_HEAD = "naiad.request_head"
"""ASGI extension that passes the head of an infer request on, because ASGI loses the case of header names."""

TRACE = "naiad.trace"
"""Key of the ASGI state: the trace of a request that an application serves, for the access log."""

CALL = "naiad.call"
"""Key of the ASGI state: the call of a request to a model that an application serves, for the access log."""

_log = logging.getLogger("naiad.http")
_INVALID_NAME = re.compile(rb'[\x00-\x1f\x7f()<>@,;:\[\]={} \t\\"]')
_INVALID_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_FAILED = b"Internal Server Error"


class Flow:
    """Flow control of a connection: whether reading is paused, and whether the client reads too slowly."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable = asyncio.Event()
        self._writable.set()
        self.read_paused = False
        self.write_paused = False

    def pause_reading(self) -> None:
        """Read nothing more from the client until `read_on`."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def read_on(self) -> None:
        """Resume reading."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Writers wait from now on."""
        self.write_paused = True
        self._writable.clear()

    def resume_writing(self) -> None:
        """Writers go on."""
        self.write_paused = False
        self._writable.set()

    async def drained(self) -> None:
        """Wait until the client has caught up."""
        await self._writable.wait()


def _body_of(message: Message) -> Buffer:
    """The body in one piece: `bytes`, or for an infer request, whose application takes it, the buffer as received."""
    front, rest, request_head = message.front, message.rest, message.head.request_head
    if front and rest:
        return b"".join((front, rest))
    takes_buffers = request_head is not None and request_head.action == "infer"
    return (rest or front) if takes_buffers else bytes(rest or front)


class AsgiCycle:
    """A request whose body is complete, and its response; `on_response` is called when the response is written.

    `decide_keep_alive` is asked when the head of the response is written. `status` is that of the response, 0 before,
    `sent` the bytes of its body.
    """

    def __init__(
        self,
        message: Message,
        transport: asyncio.Transport,
        flow: Flow,
        headers: list[tuple[bytes, bytes]],
        decide_keep_alive: Callable[[], bool],
        on_response: Callable[[], None],
    ) -> None:
        self._disconnected = False
        self.status = self.sent = 0
        self._message_event = asyncio.Event()
        self._scope = asgi_scope(message.head, transport)
        self._body: Buffer | None = _body_of(message)
        self._transport = transport
        self._flow = flow
        self._headers = headers
        self._decide_keep_alive: Callable[[], bool] | None = decide_keep_alive
        self._keep_alive = False
        self._on_response: Callable[[], None] | None = on_response
        self._started = False
        self._head = b""  # of the response, until it is written with the begin of the body
        self._complete = False
        self._chunked = False
        self._remaining: int | None = 0  # bytes of the body by its Content-Length; None: until the connection ends

    @property
    def call(self) -> Any:
        """The call of a request to a model, None for any other request."""
        return self._scope["state"].get(CALL)

    @property
    def trace(self) -> Any:
        """The trace of a request that is traced, None for any other request."""
        return self._scope["state"].get(TRACE)

    def disconnect(self) -> None:
        """The client is gone or has its response: write nothing from now on, and let the application know."""
        self._disconnected = True
        self._message_event.set()

    async def run_asgi(self, application: ASGIApp) -> None:
        """Run the application; an exception of it is logged, and answered with 500 where nothing is written yet."""
        try:
            await application(self._scope, self._receive, self._send)
        except BaseException as error:  # noqa: BLE001 - whatever an application raises, its connection must end
            if not (self._disconnected and isinstance(error, asyncio.CancelledError)):  # the server stops
                _log.error("the ASGI application failed\n", exc_info=error)
            await self._fail()
        else:
            if not (self._complete or self._disconnected):
                _log.error("the ASGI application returned without a complete response")
                await self._fail()
        finally:
            self._on_response = self._decide_keep_alive = None  # which refer to the connection

    async def _fail(self) -> None:
        if self._started and not self._head:
            self._transport.close()
            return
        self._started, self._head = False, b""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(_FAILED))]
        headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": 500, "headers": headers})
        await self._send({"type": "http.response.body", "body": _FAILED})

    async def _receive(self) -> MutableMapping[str, Any]:
        body, self._body = self._body, None
        if body is not None and not (self._disconnected or self._complete):
            return {"type": "http.request", "body": body, "more_body": False}
        while not (self._disconnected or self._complete):
            await self._message_event.wait()
            self._message_event.clear()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if self._flow.write_paused and not self._disconnected:
            await self._flow.drained()
        if self._disconnected:
            return
        expected = "http.response.body" if self._started else "http.response.start"
        if self._complete or message["type"] != expected:
            raise RuntimeError(f"the ASGI application sent '{message['type']}' out of order")
        if self._started:
            self._write_body(message.get("body", b""), message.get("more_body", False))
        else:
            self._write_head(message["status"], [*self._headers, *message.get("headers", ())])

    def _write_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        content = [_status_line(status)]
        self._keep_alive = self._decide_keep_alive is not None and self._decide_keep_alive()
        self._chunked = has_length = closes = False
        for name, value in ((name.lower(), value) for name, value in headers):
            if _INVALID_NAME.search(name) or _INVALID_VALUE.search(value):
                raise RuntimeError(f"the response has an invalid header {name!r}")
            if name == b"content-length":
                self._remaining, has_length = int(value), True
            elif name == b"transfer-encoding" and value.lower() == b"chunked":
                self._chunked = True
            elif name == b"connection" and b"close" in (token.strip() for token in value.lower().split(b",")):
                self._keep_alive, closes = False, True
            content += [name, b": ", value, b"\r\n"]
        if not (has_length or self._chunked or self._scope["method"] == "HEAD" or status in _WITHOUT_BODY):
            if self._scope["http_version"] == "1.0":  # which has no chunks (RFC 9112, section 6.1)
                self._remaining, self._keep_alive = None, False
            else:
                self._chunked = True
                content.append(b"transfer-encoding: chunked\r\n")
        if not (self._keep_alive or closes):
            content.append(b"connection: close\r\n")
        self._started, self.status = True, status
        self._head = b"".join((*content, b"\r\n"))

    def _write_body(self, body: bytes, has_more: bool) -> None:
        content = [self._head]
        if self._scope["method"] == "HEAD":
            self._remaining = 0
        elif self._chunked:
            content += (b"%x\r\n" % len(body), body, b"\r\n") if body else ()
            content += () if has_more else (b"0\r\n\r\n",)
        else:
            if self._remaining is not None:
                self._remaining -= len(body)
                if self._remaining < 0 or (self._remaining and not has_more):
                    raise RuntimeError("the response's body is not as long as its Content-Length")
            content.append(body)
        self.sent += len(body)
        self._head = b""
        self._transport.writelines(content)
        if has_more:
            return
        self._complete = True
        self._message_event.set()
        if not self._keep_alive:
            self._transport.close()
        if self._on_response is not None:
            self._on_response()


def _status_line(status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def asgi_scope(head: HttpHead, transport: asyncio.Transport) -> dict[str, Any]:
    """The ASGI scope of the request with that head."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": head.http_version,
        "server": _endpoint(transport.get_extra_info("sockname")),
        "client": _endpoint(transport.get_extra_info("peername")),
        "scheme": "http" if transport.get_extra_info("sslcontext") is None else "https",
        "root_path": "",
        "method": head.method,
        "path": unquote(head.path.decode("latin-1")),
        "raw_path": head.path,
        "query_string": head.query,
        "headers": list(head.headers),
        "state": {},
        "extensions": {REQUEST_HEAD: head.request_head},
    }


def _endpoint(address: Any) -> tuple[str, int | None] | None:
    """An address of a socket as ASGI has it: host and port, or the path of a unix socket without a port."""
    if isinstance(address, tuple):
        return str(address[0]), int(address[1])
    return (address, None) if address and isinstance(address, str) else None
