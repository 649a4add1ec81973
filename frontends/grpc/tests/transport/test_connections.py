"""Options of connections: message sizes, compression, pings, age, unix sockets."""

import asyncio
import socket
from contextlib import asynccontextmanager, suppress

import grpc
import h2.config
import h2.connection
import pytest

from naiad.options import Settings
from naiad_grpc.grpcio.arguments import channel_arguments
from naiad_grpc.options import OPTIONS

from .conftest import Calls, Served, answer

GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""The preface of a client, and an empty SETTINGS frame."""


@asynccontextmanager
async def connected(served):
    """A plain connection: reader and writer."""
    host, port = served.target.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def until(reader, part):
    """What the server sends up to that part, or to the end of the connection."""
    try:
        return await reader.readuntil(part)
    except asyncio.IncompleteReadError as error:
        return error.partial


async def passed_through(target, ask):
    """What `ask` gives when it is asked of a proxy, and how many bytes passed each way: up, down."""
    counted = [0, 0]
    tasks = []

    async def carry(reader, writer, way):
        while content := await reader.read(65536):
            counted[way] += len(content)
            writer.write(content)
        writer.close()

    async def connected(reader, writer):
        host, port = target.rsplit(":", 1)
        beyond, onward = await asyncio.open_connection(host, int(port))
        tasks.append(asyncio.ensure_future(carry(reader, onward, 0)))
        tasks.append(asyncio.ensure_future(carry(beyond, writer, 1)))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as proxy:
        host, port = proxy.sockets[0].getsockname()
        answered = await ask(f"{host}:{port}")
        await asyncio.gather(*tasks)
    return answered, *counted


@pytest.mark.parametrize(("level", "shrinks"), [("none", False), ("low", True), ("high", True)])
@pytest.mark.parametrize("algorithm", [grpc.Compression.NoCompression, grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_messages_are_compressed_as_each_side_likes(run, level, shrinks, algorithm):
    message = bytes(200_000)

    async def main():
        async with Served(Calls(), **{"grpc-infer-response-compression-level": level}) as served:

            async def ask(target):
                async with grpc.aio.insecure_channel(target) as channel:
                    return await answer(channel, "echo", message, compression=algorithm)

            return await passed_through(served.target, ask)

    answered, up, down = run(main())

    assert answered == message
    assert (up < 20_000) is (algorithm is not grpc.Compression.NoCompression)
    assert (down < 20_000) is shrinks


@pytest.mark.parametrize("size", [1000, 1001])
def test_a_message_over_the_limit_is_refused_and_harms_nothing_else(run, size):
    async def main():
        async with Served(Calls(), **{"grpc-max-message-size": 1000}) as served, served.channel() as channel:
            return await answer(channel, "echo", bytes(size)), await answer(channel, "echo", b"next")

    answered, following = run(main())

    assert (answered if size == 1000 else answered[0]) == (bytes(1000) if size == 1000 else "RESOURCE_EXHAUSTED")
    assert following == b"next"


def test_a_message_that_is_over_the_limit_once_it_is_decompressed_is_refused(run):
    async def main():
        limits = {"grpc-max-message-size": 1000}
        async with Served(Calls(), **limits) as served, served.channel(compression=grpc.Compression.Gzip) as channel:
            return await answer(channel, "echo", bytes(100_000))

    assert run(main())[0] == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(("size", "status"), [(1000, "OK"), (1001, "RESOURCE_EXHAUSTED")])
def test_an_answer_over_the_limit_is_refused_and_harms_nothing_else(run, size, status):
    async def main():
        async with Served(Calls(), **{"grpc-max-response-size": 1000}) as served, served.channel() as channel:
            stream = channel.stream_stream("/t/stream")(iter([bytes(size)]))
            with suppress(grpc.aio.AioRpcError):
                async for _ in stream:
                    pass
            streamed = (await stream.code()).name
            return streamed, await answer(channel, "echo", bytes(size)), await answer(channel, "echo", b"next")

    streamed, answered, following = run(main())

    assert streamed == status
    assert (answered if size == 1000 else answered[0]) == (bytes(1000) if size == 1000 else status)
    assert following == b"next"


def test_messages_may_be_large_unless_they_are_limited(run):
    message = bytes(20_000_000)
    limits = [("grpc.max_receive_message_length", -1)]

    async def main():
        async with Served(Calls()) as served, served.channel(options=limits) as channel:
            return await answer(channel, "echo", message) == message

    assert run(main())


def test_a_connection_of_some_age_is_ended(run):
    async def main():
        async with Served(Calls(), **{"grpc-max-connection-age": 50}) as served, served.channel() as channel:
            answered = await answer(channel, "echo", b"x")
            await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
            return answered, await answer(channel, "echo", b"y")

    assert run(main()) == (b"x", b"y")


def test_a_client_that_is_gone_without_a_word_is_noticed(run):
    pings = {
        "grpc-keepalive-time": 50,
        "grpc-keepalive-timeout": 50,
        "grpc-keepalive-permit-without-calls": True,
        "grpc-http2-max-pings-without-data": 0,
    }

    async def main():
        async with Served(Calls(), **pings) as served, connected(served) as (reader, writer):
            writer.write(GREETING)
            return await reader.read()

    assert b"ping_timeout" in run(main())


@pytest.mark.parametrize(("strikes", "ends"), [(1, True), (0, False)])
def test_a_client_that_pings_too_often_is_disconnected_unless_any_number_is_allowed(run, strikes, ends):
    ping = (8).to_bytes(3, "big") + b"\x06" + bytes(5)
    options = {"grpc-http2-max-ping-strikes": strikes, "grpc-http2-min-recv-ping-interval-without-data": 10_000}

    async def main():
        async with Served(Calls(), **options) as served, connected(served) as (reader, writer):
            # in one piece: a connection that ends while more is on its way may lose what it said last
            writer.write(GREETING + b"".join(ping + bytes((number,)) * 8 for number in range(10)))
            return await until(reader, b"too_many_pings" if ends else bytes((9,)) * 8)

    assert (b"too_many_pings" in run(main())) is ends


def test_a_client_learns_how_many_calls_its_connection_may_have(run):
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))

    async def main():
        async with (
            Served(Calls(), **{"grpc-max-concurrent-streams": 7}) as served,
            connected(served) as (reader, writer),
        ):
            client.initiate_connection()
            writer.write(client.data_to_send())
            while client.remote_settings.max_concurrent_streams != 7:
                received = await reader.read(65536)
                assert received
                client.receive_data(received)

    run(main())


def test_calls_of_an_old_connection_end_after_their_grace(run):
    calls = Calls()
    age = {"grpc-max-connection-age": 50, "grpc-max-connection-age-grace": 50}

    async def main():
        async with Served(calls, **age) as served:
            return await served.ask("wait"), await served.ask("echo", b"next")

    (status, _), following = run(main())

    assert (status in ("UNAVAILABLE", "CANCELLED"), calls.noted, following) == (True, ["cancelled"], b"next")


def test_options_come_to_channel_arguments_of_grpcio():
    answered = {
        "grpc-max-message-size": 7,
        "grpc-max-response-size": 9,
        "grpc-max-connections": 33,
        "grpc-max-concurrent-streams": 10,
        "grpc-max-connection-idle": 11,
        "grpc-handshake-timeout": 12,
        "grpc-keepalive-time": 1,
        "grpc-keepalive-timeout": 2,
        "grpc-keepalive-permit-without-calls": True,
        "grpc-http2-max-pings-without-data": 3,
        "grpc-http2-min-recv-ping-interval-without-data": 4,
        "grpc-http2-max-ping-strikes": 5,
        "grpc-max-connection-age": 6,
        "grpc-max-connection-age-grace": 8,
        "grpc-infer-response-compression-level": "medium",
    }

    assert dict(channel_arguments(Settings(OPTIONS, answered))) == {
        "grpc.so_reuseport": 0,
        "grpc.max_receive_message_length": 7,
        "grpc.max_send_message_length": 9,
        "grpc.max_allowed_incoming_connections": 33,
        "grpc.server.max_pending_requests": 10_000,
        "grpc.server.max_pending_requests_hard_limit": 10_000,
        "grpc.max_concurrent_streams": 10,
        "grpc.max_connection_idle_ms": 11,
        "grpc.server_handshake_timeout_ms": 12,
        "grpc.keepalive_time_ms": 1,
        "grpc.keepalive_timeout_ms": 2,
        "grpc.http2.ping_timeout_ms": 2,
        "grpc.keepalive_permit_without_calls": 1,
        "grpc.http2.max_pings_without_data": 3,
        "grpc.http2.min_recv_ping_interval_without_data_ms": 4,
        "grpc.http2.max_ping_strikes": 5,
        "grpc.max_connection_age_ms": 6,
        "grpc.max_connection_age_grace_ms": 8,
        "grpc.default_compression_level": 2,
    }


def test_a_unix_socket_is_made_and_taken_away_again(run, tmp_path):
    path = tmp_path / "naiad.sock"

    async def main():
        async with Served(Calls(), **{"grpc-address": f"unix:{path}"}) as served:
            return served.target, path.is_socket(), await served.ask("echo", b"x")

    assert run(main()) == (f"unix:{path}", True, b"x")
    assert not path.exists()


def test_a_unix_socket_that_was_left_behind_is_replaced(run, tmp_path):
    path = tmp_path / "naiad.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))

    async def main():
        async with Served(Calls(), **{"grpc-address": f"unix:{path}"}) as served:
            return await served.ask("echo", b"x")

    assert run(main()) == b"x"
