"""Calls that a client resets in the same bytes that begin them: the other calls of its connection go on."""

import asyncio

import h2.config
import h2.connection
import h2.events
import pytest

from .conftest import Calls, Served


def begin(client, path, message=None):
    """Begin a call; with a message, which is its only one, its request is complete."""
    stream = client.get_next_available_stream_id()
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers"}
    client.send_headers(stream, [*fields.items(), ("content-type", "application/grpc")])
    if message is not None:
        client.send_data(stream, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=True)
    return stream


@pytest.mark.parametrize(("path", "message"), [("/t/missing", None), ("/t/echo", b"x"), ("/t/stream", b"x")])
def test_a_call_that_is_reset_at_once_leaves_the_others_alone(run, path, message):
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))

    async def main():
        async with Served(Calls()) as served:
            host, port = served.target.rsplit(":", 1)
            reader, writer = await asyncio.open_connection(host, int(port))
            client.initiate_connection()
            for _ in range(3):
                client.reset_stream(begin(client, path, message))
            stream = begin(client, "/t/echo", b"answered")
            content = b""
            while True:
                writer.write(client.data_to_send())
                received = await reader.read(65536)
                for event in client.receive_data(received):
                    if isinstance(event, h2.events.DataReceived) and event.stream_id == stream:
                        content += event.data
                    if isinstance(event, h2.events.StreamEnded) and event.stream_id == stream:
                        writer.close()
                        return content
                if not received:
                    return None

    assert run(main()) == b"\0\0\0\0\x08answered"
