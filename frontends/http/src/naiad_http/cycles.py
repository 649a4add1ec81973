"""ASGI cycles of uvicorn for complete requests."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from naiad_http.heads import HttpHead
from naiad_http.incoming import Message

REQUEST_HEAD = "naiad.request_head"
"""ASGI extension that passes the head of an infer request on, because ASGI loses the case of header names."""

_log = logging.getLogger("uvicorn.error")


class ReadFlow(FlowControl):
    """uvicorn's flow control, except that only the connection resumes reading.

    uvicorn's cycles resume reading whenever an application receives, however many pipelined requests wait.
    """

    def resume_reading(self) -> None:
        """Do nothing: see `read_on`."""

    def read_on(self) -> None:
        """Resume reading."""
        super().resume_reading()


def make_cycle(
    message: Message,
    transport: asyncio.Transport,
    flow: FlowControl,
    state: ServerState,
    keep_alive: bool,
    on_response: Callable[[], None],
) -> RequestResponseCycle:
    """The cycle of a request whose body is complete; `on_response` is called when its response is written."""
    cycle = RequestResponseCycle(
        scope=_scope(message.head, transport),  # type: ignore[arg-type]
        transport=transport,
        flow=flow,
        logger=_log,
        access_logger=_log,
        access_log=False,
        default_headers=state.default_headers,
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=on_response,
    )
    # a bytearray, as in uvicorn, would be copied once more
    cycle.body = b"".join((message.front, message.rest)) if message.rest else bytes(message.front)  # type: ignore[assignment]
    cycle.more_body = False
    cycle.message_event.set()
    return cycle


def _scope(head: HttpHead, transport: asyncio.Transport) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": head.http_version,
        "server": get_local_addr(transport),
        "client": get_remote_addr(transport),
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
