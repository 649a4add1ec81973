"""What options make of connections: sizes, compression, pings, age, restrictions, TLS, unix sockets."""

import asyncio
import socket

import grpc
import pytest

from naiad.errors import InvalidArgumentError
from naiad.options import Settings
from naiad_grpc.options import OPTIONS
from naiad_grpc.transport.arguments import channel_arguments
from naiad_grpc.transport.credentials import server_credentials

from .conftest import Calls, Served, answer


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
        given = await ask(f"{host}:{port}")
        await asyncio.gather(*tasks)
    return given, *counted


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

    given, up, down = run(main())

    assert given == message
    assert (up < 20_000) is (algorithm is not grpc.Compression.NoCompression)
    assert (down < 20_000) is shrinks


@pytest.mark.parametrize("size", [1000, 1001])
def test_a_message_over_the_limit_is_refused_and_harms_nothing_else(run, size):
    async def main():
        async with Served(Calls(), **{"grpc-max-message-size": 1000}) as served, served.channel() as channel:
            return await answer(channel, "echo", bytes(size)), await answer(channel, "echo", b"next")

    given, following = run(main())

    assert (given if size == 1000 else given[0]) == (bytes(1000) if size == 1000 else "RESOURCE_EXHAUSTED")
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
            given = await answer(channel, "echo", b"x")
            await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
            return given, await answer(channel, "echo", b"y")

    assert run(main()) == (b"x", b"y")


def test_a_client_that_is_gone_without_a_word_is_noticed(run):
    pings = {
        "grpc-keepalive-time": 50,
        "grpc-keepalive-timeout": 50,
        "grpc-keepalive-permit-without-calls": True,
        "grpc-http2-max-pings-without-data": 0,
    }

    async def main():
        async with Served(Calls(), **pings) as served:
            host, port = served.target.rsplit(":", 1)
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))  # and an empty SETTINGS
            heard = await reader.read()
            writer.close()
            return heard

    assert b"ping_timeout" in run(main())


def test_options_come_to_channel_arguments():
    given = {
        "reuse-grpc-port": True,
        "grpc-max-message-size": 7,
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

    assert dict(channel_arguments(Settings(OPTIONS, given))) == {
        "grpc.so_reuseport": 1,
        "grpc.max_receive_message_length": 7,
        "grpc.max_send_message_length": 7,
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


RULE = "inference:key=secret"
HEADER = "triton-grpc-protocol-key"


@pytest.mark.parametrize(
    ("metadata", "passes"),
    [((), False), (((HEADER, "wrong"),), False), (((HEADER, "secret"),), True), ((("key", "secret"),), False)],
)
def test_a_restricted_call_needs_its_metadata(run, metadata, passes):
    async def main():
        async with Served(Calls(), **{"grpc-restricted-protocol": (RULE,)}) as served, served.channel() as channel:
            stream = channel.stream_stream("/t/stream")(metadata=metadata)
            if passes:
                await stream.done_writing()
                await stream.read()
            return (
                await answer(channel, "echo", b"x", metadata=metadata),
                (await stream.code()).name,
                await answer(channel, "other", b"free"),
            )

    given, streamed, other = run(main())

    assert given == (b"x" if passes else ("UNAVAILABLE", f"This protocol is restricted, expecting header '{HEADER}'"))
    assert (streamed, other) == ("OK" if passes else "UNAVAILABLE", b"free")


@pytest.mark.parametrize("rule", ["all:key=secret", "inference", "inference,inference:key=secret"])
def test_a_restriction_that_makes_no_sense_is_refused(run, rule):
    async def main():
        Served(Calls(), **{"grpc-restricted-protocol": (rule,)})

    with pytest.raises(InvalidArgumentError, match="--grpc-restricted-protocol"):
        run(main())


def server_side(certificates, **more):
    files = {"grpc-server-cert": certificates.file("cert"), "grpc-server-key": certificates.file("key")}
    return {"grpc-use-ssl": True, **files, **more}


async def asked_over_tls(served, *credentials):
    """The answer on `localhost`, which is whom the certificate is for."""
    options = [("grpc.ssl_target_name_override", "localhost")]
    async with served.channel(grpc.ssl_channel_credentials(*credentials), options=options) as channel:
        return await answer(channel, "echo", b"x", timeout=20)


def test_clients_that_trust_the_root_are_served_over_tls(run, certificates):
    async def main():
        async with Served(Calls(), **server_side(certificates)) as served:
            return (
                await asked_over_tls(served, certificates.root),
                (await asked_over_tls(served, certificates.other_root))[0],
                (await served.ask("echo", timeout=20))[0],
            )

    assert run(main()) == (b"x", "UNAVAILABLE", "UNAVAILABLE")


def test_over_mutual_tls_clients_must_show_a_certificate_of_the_root(run, certificates):
    mutual = {"grpc-use-ssl": False, "grpc-use-ssl-mutual": True, "grpc-root-cert": certificates.file("root")}
    pair = (certificates.client_key, certificates.client_cert)

    async def main():
        async with Served(Calls(), **server_side(certificates, **mutual)) as served:
            return (
                await asked_over_tls(served, certificates.root, *pair),
                (await asked_over_tls(served, certificates.root))[0],
            )

    assert run(main()) == (b"x", "UNAVAILABLE")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"grpc-server-cert": ""}, "gRPC over TLS needs --grpc-server-cert"),
        ({"grpc-server-key": "/no/such/file"}, "--grpc-server-key: '/no/such/file' cannot be read: No such file"),
        ({"grpc-server-key": "client_key"}, "belong together"),
        ({"grpc-server-cert": "broken"}, "belong together"),
        ({"grpc-use-ssl-mutual": True}, "gRPC over TLS needs --grpc-root-cert"),
        ({"grpc-use-ssl-mutual": True, "grpc-root-cert": "broken"}, "--grpc-root-cert"),
    ],
)
def test_certificates_that_cannot_work_are_refused_at_start(certificates, changes, told):
    given = {
        name: certificates.file(value) if isinstance(value, str) and hasattr(certificates, value) else value
        for name, value in changes.items()
    }

    with pytest.raises(InvalidArgumentError) as caught:
        server_credentials(Settings(OPTIONS, server_side(certificates, **given)))

    assert told in str(caught.value)


def test_plain_connections_need_no_certificates():
    assert server_credentials(Settings(OPTIONS, {})) is None


def test_a_unix_socket_is_made_and_taken_away_again(run, tmp_path):
    path = tmp_path / "naiad.sock"

    async def main():
        async with Served(Calls(), **{"grpc-address": f"unix:{path}"}) as served:
            return served.target, path.is_socket(), await served.ask("echo", b"x")

    assert run(main()) == (f"unix:{path}", True, b"x")
    assert not path.exists()


def test_a_unix_socket_that_was_left_behind_is_replaced(run, tmp_path):
    path = tmp_path / "naiad.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    async def main():
        async with Served(Calls(), **{"grpc-address": f"unix:{path}"}) as served:
            return await served.ask("echo", b"x")

    assert run(main()) == b"x"
