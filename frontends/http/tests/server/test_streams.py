"""Streams of a whole server over real sockets: readers that are slow or leave, and a server that stops."""

import asyncio
import json
import socket
import struct
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import uvicorn

import naiad_http
from naiad import Server
from naiad_http.assembly import asgi_application

from .teller import TellerPlugin, write_teller

MOST_UNDERWAY = 15_000_000
"""More bytes than the system's buffers of a connection and our own take together."""


def post(action="generate_stream", version="HTTP/1.1", **members):
    body = json.dumps(members).encode()
    head = f"POST /v2/models/teller/{action} {version}\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def events_of(reader):
    """The documents of the events of the next answer, which must be a whole chunked stream."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    assert b"\r\ntransfer-encoding: chunked\r\n" in head.lower()
    pieces = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append(await reader.readexactly(size))
        assert await reader.readexactly(2) == b"\r\n"
    assert await reader.readexactly(2) == b"\r\n"
    return [json.loads(event.removeprefix(b"data: ")) for event in b"".join(pieces).split(b"\n\n")[:-1]]


async def answer_of(reader):
    """The status and the document of the next answer, which must have a length; it may be that of an event."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    return int(head.split()[1]), json.loads(body.removeprefix(b"data: "))


def numbers(events):
    return [event["NUMBER"] for event in events]


@pytest.fixture
def plugin():
    plugin = TellerPlugin()
    yield plugin
    plugin.teller.opened.set()


@pytest.fixture
def teller(plugin):
    return plugin.teller


@pytest.fixture
def serving(tmp_path, plugin):
    """A context in which a server runs, with our own listener or under uvicorn as it comes; it gives the port."""
    repository = write_teller(tmp_path / "models")

    @asynccontextmanager
    async def serving(stock=False, **options):
        chosen = {"http-port": 0, "http-address": "127.0.0.1", "allow-http": not stock, "exit-timeout-secs": 20.0}
        async with Server(
            model_repository=[repository], plugins=[plugin, naiad_http], options=chosen | options
        ) as server:
            if not stock:
                yield server.plugins.frontends()["http"].port
                return
            config = uvicorn.Config(asgi_application(server), log_config=None, log_level="critical", ws="none")
            other = uvicorn.Server(config)
            with socket.create_server(("127.0.0.1", 0)) as listening:
                task = asyncio.ensure_future(other.serve([listening]))
                try:
                    yield listening.getsockname()[1]
                finally:
                    other.should_exit = True
                    await task

    return serving


@asynccontextmanager
async def connected(port, receive_buffer=0):
    """A connection that reads nothing ahead."""
    plain = socket.socket()
    if receive_buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=plain, limit=2048)
    try:
        yield reader, writer
    finally:
        writer.close()


async def refused(port):
    """Return once no process listens on the port any more."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return
        writer.close()
        await asyncio.sleep(0)


STOCK = pytest.mark.parametrize("stock", [False, True], ids=["own", "uvicorn"])


@STOCK
def test_a_long_stream_comes_whole_and_in_order(run, serving, stock):
    async def main():
        async with serving(stock) as port, connected(port) as (reader, writer):
            writer.write(post(COUNT=20_000, SIZE=100))
            return await events_of(reader)

    events = run(main())

    assert numbers(events) == list(range(20_000))
    assert {len(event["TEXT"]) for event in events} == {100}


@STOCK
def test_a_slow_reader_lets_its_model_wait_and_no_other(run, serving, teller, stock):
    async def main():
        async with serving(stock) as port, connected(port, 65536) as (reader, writer):
            writer.write(post(COUNT=30_000, SIZE=1000))
            assert await asyncio.to_thread(teller.stuck.wait, 30)
            sent = teller.sent
            async with connected(port) as (other_reader, other_writer):
                other_writer.write(b"GET /v2/health/live HTTP/1.0\r\n\r\n")
                health = await other_reader.read()
            return sent, health, await events_of(reader)

    sent, health, events = run(main())

    assert sent * 1000 < MOST_UNDERWAY
    assert health.startswith(b"HTTP/1.1 200 ")
    assert len(events) == 30_000


@STOCK
def test_a_reader_that_leaves_takes_its_request_back(run, serving, teller, stock):
    async def main():
        async with serving(stock) as port, connected(port) as (reader, writer):
            writer.write(post(COUNT=2**30, SIZE=100))
            await reader.readuntil(b"data: ")
            writer.transport.abort()
            return await asyncio.to_thread(teller.cancelled.wait, 30)

    assert run(main())


def test_a_reader_that_leaves_while_its_model_waits_frees_the_model(run, serving, teller):
    async def main():
        async with serving() as port:
            async with connected(port, 65536) as (_, writer):
                writer.write(post(COUNT=2**30, SIZE=1000))
                assert await asyncio.to_thread(teller.stuck.wait, 30)
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return await asyncio.to_thread(teller.cancelled.wait, 30)

    assert run(main())


def test_requests_behind_a_stream_are_answered_after_it(run, serving):
    async def main():
        async with serving() as port, connected(port) as (reader, writer):
            writer.write(post(COUNT=3) + post("generate", COUNT=1) + post(COUNT=0) + post(COUNT=2))
            return (
                await events_of(reader),
                await answer_of(reader),
                await events_of(reader),
                await events_of(reader),
            )

    first, whole, empty, last = run(main())

    assert (numbers(first), numbers(last), empty) == ([0, 1, 2], [0, 1], [])
    assert whole == (200, {"model_name": "teller", "model_version": "1", "NUMBER": 0, "TEXT": "x"})


@pytest.mark.parametrize("count", [0, 2, 50])
def test_generate_wants_exactly_one_response(run, serving, count):
    async def main():
        async with serving() as port, connected(port) as (reader, writer):
            writer.write(post("generate", COUNT=count))
            return await answer_of(reader)

    status, document = run(main())

    assert status == 400
    assert "generate expects model to produce exactly 1 response" in document["error"]


def test_an_error_of_the_model_is_the_last_event(run, serving):
    async def main():
        async with serving() as port, connected(port) as (reader, writer):
            writer.write(post(id="7", COUNT=2, fail=True) + post(COUNT=0, fail=True))
            return await events_of(reader), await answer_of(reader)

    events, refused = run(main())

    assert numbers(events[:2]) == [0, 1]
    assert events[2] == {"error": "[request id: 7] sent too much"}
    assert refused == (400, {"error": "sent too much"})


def test_a_client_of_http_1_0_reads_until_the_end_of_the_connection(run, serving):
    async def main():
        async with serving() as port, connected(port) as (reader, writer):
            writer.write(post(version="HTTP/1.0", COUNT=3))
            return await reader.read()

    head, _, body = run(main()).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in head.lower()
    assert [json.loads(line[6:])["NUMBER"] for line in body.split(b"\n\n")[:-1]] == [0, 1, 2]


def test_a_stopping_server_lets_a_stream_end(run, serving, teller):
    async def main():
        stack = AsyncExitStack()
        port = await stack.enter_async_context(serving())
        async with connected(port) as (reader, writer):
            writer.write(post(COUNT=3, wait=True))
            assert await asyncio.to_thread(teller.waits.wait, 30)
            stopping = asyncio.ensure_future(stack.aclose())
            await refused(port)
            teller.opened.set()
            answered = await events_of(reader), await reader.read()
            await stopping
            return answered

    events, rest = run(main())

    assert (numbers(events), rest) == ([0, 1, 2], b"")


def test_a_stream_that_outlasts_a_stopping_server_ends_with_a_word(run, serving, teller):
    async def main():
        stack = AsyncExitStack()
        port = await stack.enter_async_context(serving(**{"exit-timeout-secs": 0.4}))
        async with connected(port) as (reader, writer):
            writer.write(post(COUNT=3, wait=True))
            assert await asyncio.to_thread(teller.waits.wait, 30)
            stopping = asyncio.ensure_future(stack.aclose())
            events = await events_of(reader)
            teller.opened.set()
            await stopping
            return events

    events = run(main())

    assert events[0]["NUMBER"] == 0
    assert "the server stopped before the model had answered" in events[1]["error"]
