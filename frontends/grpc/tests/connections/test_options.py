"""Each option of the frontend that limits connections and calls, where our own transport keeps it."""

import asyncio
from math import inf

import grpc
import pytest

from naiad.options import Settings
from naiad_grpc.http2.timers import Timeouts
from naiad_grpc.options import MOST, OPTIONS
from naiad_grpc.server.listener import Listener
from naiad_grpc.wire.compression import LEVELS
from naiad_kit.frontends.byte_budget import ByteBudget

from .conftest import Calls, client_of, listening, message

CHOSEN = {
    "grpc-handshake-timeout": 1_000,
    "grpc-max-connection-idle": 2_000,
    "grpc-max-connection-age": 3_000,
    "grpc-max-connection-age-grace": 4_000,
    "grpc-keepalive-time": 5_000,
    "grpc-keepalive-timeout": 6_000,
    "grpc-keepalive-permit-without-calls": True,
    "grpc-http2-max-pings-without-data": 7,
    "grpc-http2-min-recv-ping-interval-without-data": 8_000,
    "grpc-http2-max-ping-strikes": 9,
    "grpc-max-concurrent-streams": 10,
    "grpc-max-connections": 11,
    "grpc-connection-window": 70_000,
    "grpc-max-message-size": 12,
    "grpc-max-response-size": 13,
    "grpc-infer-response-compression-level": "medium",
}
TIMEOUTS = Timeouts(
    handshake=1,
    idle=2,
    age=3,
    age_grace=4,
    keepalive=5,
    keepalive_timeout=6,
    keepalive_without_calls=True,
    most_pings=7,
    least_ping_interval=8,
    most_ping_strikes=9,
)


def context_of(**options):
    """What the connections of a listener with these options share."""

    async def main():
        return Listener(Calls().operations(), Settings(OPTIONS, options), ByteBudget(1 << 30))._context

    return asyncio.run(main())


def test_options_come_to_the_limits_of_our_transport():
    context = context_of(**CHOSEN)

    assert context.limits.timeouts == TIMEOUTS
    assert (context.limits.streams, context.most_connections) == (10, 11)
    assert (context.limits.stream_window, context.limits.window) == (70_000, 70_000)
    assert (context.most, context.most_sent, context.level) == (12, 13, LEVELS["medium"])


@pytest.mark.parametrize("option", ["age", "age-grace"])
def test_the_largest_number_of_milliseconds_sets_no_limit(option):
    context = context_of(**{f"grpc-max-connection-{option}": MOST})

    assert getattr(context.limits.timeouts, option.replace("-", "_")) == inf


@pytest.mark.parametrize(("chosen", "of_stream"), [({}, 1 << 20), ({"grpc-connection-window": 100_000}, 100_000)])
def test_a_client_may_send_ahead_what_the_option_says(run, chosen, of_stream):
    async def main():
        async with listening(**chosen) as listener, client_of(listener) as client:
            await client.status(client.begin("/t/echo", message(b"x")))
            return client.h2.outbound_flow_control_window, client.h2.remote_settings.initial_window_size

    of_connection, of_streams = run(main())

    assert of_streams == of_stream
    assert of_connection == chosen.get("grpc-connection-window", 8 << 20) - len(message(b"x"))


def test_a_message_larger_than_the_window_comes_through(run):
    content = message(bytes(1_000_000))

    async def main():
        async with (
            listening(**{"grpc-connection-window": 65_535}) as listener,
            grpc.aio.insecure_channel(listener.target) as channel,
        ):
            return await channel.unary_unary("/t/echo")(content)

    assert run(main()) == content
