"""Connections of an embedded uvicorn: silent, slow and numerous clients are cut off, and others are served."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from socket import create_server
from typing import Any

import pytest

from naiad_kit.frontends.bounded_connections import BoundedConnections, ConnectionLimits
from naiad_kit.frontends.embedded_server import EmbeddedServer, embedded_config

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Application:
    """Reads the body, then answers with its size when it may; that of a GET for /stream is 65 MB."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.opened.set()

    async def __call__(self, scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        size, has_more = 0, scope["method"] == "POST"
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size, has_more = size + len(message["body"]), message["more_body"]
        self.entered.set()
        await self.opened.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1000 if scope["path"] == "/stream" else 0):
            await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
        await send({"type": "http.response.body", "body": b"%d bytes" % size})


@asynccontextmanager
async def listening(application: Application, **limits: Any) -> AsyncIterator[Callable[[], Any]]:
    """A way to connect to a server within these limits."""
    connections = BoundedConnections(ConnectionLimits(**{"most": 8} | limits))
    server = EmbeddedServer(embedded_config(connections.watched(application), http=connections.make))
    socket = create_server(("127.0.0.1", 0))
    address = socket.getsockname()
    await server.open(socket)
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> Stream:
        reader, writer = await asyncio.open_connection(*address)
        writers.append(writer)
        return reader, writer

    try:
        yield connect
    finally:
        application.opened.set()
        for writer in writers:
            writer.transport.abort()
        await server.close(0.1)


async def ends(stream: Stream) -> bytes:
    """What comes until the server cuts the connection off."""
    async with asyncio.timeout(10):
        try:
            return await stream[0].read()
        except ConnectionResetError:
            return b""


async def answer(stream: Stream, request: bytes = GET) -> bytes:
    stream[1].write(request)
    async with asyncio.timeout(10):
        return await stream[0].readuntil(b"bytes")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n"])
async def test_a_client_without_a_whole_head_is_cut_off(sent: bytes) -> None:
    async with listening(Application(), head=0.01) as connect:
        stream = await connect()
        stream[1].write(sent)

        assert await ends(stream) == b""


async def test_a_client_whose_body_does_not_come_is_cut_off() -> None:
    async with listening(Application(), body=0.01) as connect:
        stream = await connect()
        stream[1].write(POST % 10 + b"12345")

        assert await ends(stream) == b""


async def test_a_body_that_comes_fast_enough_gets_its_time() -> None:
    async with listening(Application(), body=0.01) as connect:
        stream = await connect()
        stream[1].write(POST % 300_000 + bytes(200_000))
        await asyncio.sleep(0.05)

        assert (await answer(stream, bytes(100_000))).endswith(b"300000 bytes")


async def test_a_request_may_take_as_long_as_it_takes() -> None:
    application = Application()
    application.opened.clear()
    async with listening(application, head=0.01, body=0.01) as connect:
        stream = await connect()
        answered = asyncio.ensure_future(answer(stream, POST % 3 + b"123"))
        await application.entered.wait()
        await asyncio.sleep(0.05)
        application.opened.set()

        assert (await answered).endswith(b"3 bytes")


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    async with listening(Application(), stall=0.01) as connect:
        _, writer = await connect()
        writer.transport.pause_reading()
        writer.write(GET.replace(b"/ ", b"/stream "))

        async with asyncio.timeout(10):
            while not writer.transport.is_closing():
                writer.write(b"x")
                await asyncio.sleep(0.01)


async def test_heads_are_bounded_however_fast_they_come() -> None:
    async with listening(Application()) as connect:
        stream = await connect()
        stream[1].write(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: %s\r\n" % bytes(70_000).replace(b"\0", b"x") * 16)

        assert await ends(stream) == b""


async def test_a_new_client_replaces_the_one_that_has_been_silent_for_longest() -> None:
    async with listening(Application(), most=2) as connect:
        first, second = await connect(), await connect()
        await answer(first)
        await answer(second)

        third = await connect()

        assert (await answer(third)).endswith(b"0 bytes")
        assert b"HTTP" not in await ends(first)
        assert (await answer(second)).endswith(b"0 bytes")


async def test_a_client_too_many_is_cut_off_while_all_others_wait_for_answers() -> None:
    application = Application()
    application.opened.clear()
    async with listening(application, most=1) as connect:
        stream = await connect()
        answered = asyncio.ensure_future(answer(stream))
        await application.entered.wait()

        assert await ends(await connect()) == b""

        application.opened.set()
        assert (await answered).endswith(b"0 bytes")


async def test_requests_on_one_connection_are_answered_one_after_the_other() -> None:
    async with listening(Application()) as connect:
        stream = await connect()
        stream[1].write(GET + POST % 2 + b"ab")

        assert b"0 bytes" in await answer(stream, b"")
        assert b"2 bytes" in await answer(stream, GET)
        assert b"0 bytes" in await answer(stream, b"")
