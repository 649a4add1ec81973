"""How many calls are started in a turn of the event loop."""

import asyncio

import pytest

from naiad_grpc.server.protocol import GrpcProtocol
from naiad_grpc.service.operations import UnaryOperation
from naiad_kit.frontends.turns import STARTED_PER_TURN

from ..http2.conftest import DATA, END, END_HEADERS, RST, frame, number
from .conftest import GREETING, Calls, Transport, begin, listening, message


class Begun(Calls):
    """Calls without a task that are answered at once; `noted` has their messages in the order of their starts."""

    def operations(self):
        return [*super().operations(), UnaryOperation("/t/begun", "inference", self.echo, self.begin)]

    def begin(self, content, _context, answered, _decoded):
        self.noted.append(content)
        answered([content])
        return lambda: None


@pytest.fixture
def on_connections(run):
    """What `act(calls, *connections)` returns, with so many connections of a listener."""

    def on_connections(count, act):
        async def main():
            calls = Begun()
            async with listening(calls) as listener:
                connections = [GrpcProtocol(listener._context) for _ in range(count)]
                for each in connections:
                    each.connection_made(Transport())
                    each.receive(GREETING)
                try:
                    return await act(calls, *connections)
                finally:
                    for each in connections:
                        each.connection_lost(None)

        return run(main())

    return on_connections


def call(stream, content):
    """The frames of a whole call."""
    return begin(stream, "/t/begun", END_HEADERS) + frame(DATA, END, stream, message(content))


async def started_by_turns(calls, most):
    """How many calls have started after each turn, until so many have, or ten turns have passed."""
    started = [len(calls.noted)]
    while started[-1] < most and len(started) < 10:
        await asyncio.sleep(0)
        started.append(len(calls.noted))
    return started


def test_a_turn_starts_its_share_over_all_connections_in_the_order_of_their_bytes(on_connections):
    async def act(calls, *connections):
        for count, connection in enumerate(connections):
            connection.receive(call(1, b"%d" % count))
        return await started_by_turns(calls, 200), calls.noted

    started, noted = on_connections(200, act)

    assert started == [64, 128, 192, 200]
    assert noted == [b"%d" % count for count in range(200)]


def test_the_calls_of_one_connection_are_spread_over_turns_and_others_wait_in_the_order_of_arrival(on_connections):
    async def act(calls, greedy, other):
        greedy.receive(b"".join(call(stream, b"greedy") for stream in range(1, 601, 2)))
        other.receive(call(1, b"other"))
        greedy.receive(call(601, b"greedy"))
        return await started_by_turns(calls, 302), calls.noted

    started, noted = on_connections(2, act)

    assert started == [64, 128, 192, 256, 302]
    assert noted == [*[b"greedy"] * 300, b"other", b"greedy"]


def test_a_call_that_is_reset_before_its_turn_is_not_started(on_connections):
    async def act(calls, first, second):
        first.receive(b"".join(call(stream, b"first") for stream in range(1, 2 * STARTED_PER_TURN, 2)))
        second.receive(call(1, b"reset") + call(3, b"kept"))
        second.receive(frame(RST, 0, 1, number(8)))
        for _ in range(5):
            await asyncio.sleep(0)
        return calls.noted

    noted = on_connections(2, act)

    assert noted == [b"first"] * STARTED_PER_TURN + [b"kept"]
