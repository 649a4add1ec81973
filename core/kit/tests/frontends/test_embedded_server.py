"""uvicorn on a loop of ours: it serves the socket that it gets, leaves signals alone, and ends as soon as it can."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from naiad.errors import InternalError
from naiad_kit.frontends.embedded_server import EmbeddedServer, embedded_config

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Application:
    """An ASGI application that answers when it may."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.opened.set()
        self.cancelled = False

    async def __call__(self, scope: Any, _receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        self.entered.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


def tcp() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@asynccontextmanager
async def serving(application: Application, listening: socket.socket) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(embedded_config(application))
    await server.open(listening)
    yield server
    await server.close(5.0)


async def ask(address: Any) -> bytes:
    connect = asyncio.open_unix_connection(address) if isinstance(address, str) else asyncio.open_connection(*address)
    reader, writer = await connect
    writer.write(REQUEST)
    received = await reader.read(65536)
    writer.close()
    return received


def unix(tmp_path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    return listening


@pytest.mark.parametrize("on_path", [False, True], ids=["tcp", "unix"])
async def test_the_socket_is_served_with_a_date_and_no_name_of_the_server(tmp_path: Path, on_path: bool) -> None:
    listening = unix(tmp_path) if on_path else tcp()
    address = listening.getsockname()

    async with serving(Application(), listening):
        received = await ask(address)

    head, _, body = received.partition(b"\r\n\r\n")
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    assert (head[:15], body) == (b"HTTP/1.1 200 OK", b"ok")
    assert parsedate_to_datetime(lines[b"date"].decode())
    assert b"server" not in lines


async def test_signals_stay_with_the_owner_of_the_process() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    async with serving(Application(), tcp()):
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


async def test_a_request_in_flight_is_answered_before_the_end() -> None:
    application, listening = Application(), tcp()
    application.opened.clear()

    async with serving(application, listening) as server:
        answered = asyncio.ensure_future(ask(listening.getsockname()))
        await application.entered.wait()
        closing = asyncio.ensure_future(server.close(5.0))
        await asyncio.sleep(0)
        application.opened.set()
        await closing

        assert (await answered).endswith(b"ok")


async def test_a_request_that_outlasts_the_grace_period_is_cancelled_and_its_connection_closed() -> None:
    application, listening = Application(), tcp()
    application.opened.clear()

    async with serving(application, listening) as server:
        answered = asyncio.ensure_future(ask(listening.getsockname()))
        await application.entered.wait()
        await server.close(0.01)

        assert await answered == b""
    assert application.cancelled


async def test_a_socket_that_cannot_be_served_is_an_error() -> None:
    listening = tcp()
    listening.close()

    with pytest.raises(InternalError, match="ended before it listened") as raised:
        await EmbeddedServer(embedded_config(Application())).open(listening)

    assert isinstance(raised.value.__cause__, OSError)
