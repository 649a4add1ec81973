"""Streams over real sockets on either event loop, from our own listener and under uvicorn as it comes."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import pytest
import uvicorn

import naiad_http
from naiad import Server
from naiad_http.assembly import asgi_application
from naiad_testing.frontends import SuiteBackend

MOST_UNDERWAY = 15_000_000
"""More bytes than the system's buffers of a connection and our own take together."""

pytestmark = pytest.mark.parametrize("stock", [False, True], ids=["own", "uvicorn"])


def post(**members):
    body = json.dumps(members).encode()
    head = f"POST /v2/models/repeat/generate_stream HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
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


@pytest.fixture
def backend():
    return SuiteBackend()


@pytest.fixture
def serving(tmp_path, backend, stock):
    """A context in which a server runs, with our own listener or under uvicorn; it gives the port."""
    backend.write_models(tmp_path)

    @asynccontextmanager
    async def serving():
        options = {"http-port": 0, "http-address": "127.0.0.1", "allow-http": not stock, "exit-timeout-secs": 20.0}
        async with Server(model_repository=[tmp_path], plugins=[backend, naiad_http], options=options) as server:
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


def test_a_long_stream_comes_whole_and_in_order(run, serving):
    async def main():
        async with serving() as port, connected(port) as (reader, writer):
            writer.write(post(COUNT=4000, SIZE=500))
            return await events_of(reader)

    events = run(main())

    assert [event["INDEX"] for event in events] == list(range(4000))
    assert {len(event["TEXT"]) for event in events} == {500}


def test_a_slow_reader_lets_its_model_wait_and_no_other(run, serving, backend):
    async def main():
        async with serving() as port, connected(port, 65536) as (reader, writer):
            writer.write(post(COUNT=3000, SIZE=10_000))
            assert await asyncio.to_thread(backend.stuck.wait, 30)
            sent = backend.sent
            async with connected(port) as (other_reader, other_writer):
                other_writer.write(b"GET /v2/health/live HTTP/1.0\r\n\r\n")
                health = await other_reader.read()
            return sent, health, await events_of(reader)

    sent, health, events = run(main())

    assert sent * 10_000 < MOST_UNDERWAY
    assert health.startswith(b"HTTP/1.1 200 ")
    assert len(events) == 3000


def test_a_reader_that_leaves_takes_its_request_back(run, serving, backend):
    async def main():
        async with serving() as port, connected(port) as (reader, writer):
            writer.write(post(COUNT=2**30, SIZE=100))
            await reader.readuntil(b"data: ")
            writer.transport.abort()
            return await asyncio.to_thread(backend.cancelled.wait, 30)

    assert run(main())
