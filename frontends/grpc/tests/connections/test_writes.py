"""When answers are written: joined while the client waits for others, and at once with the last of them."""

import asyncio

import pytest

from naiad_grpc.server import protocol
from naiad_grpc.service.operations import UnaryOperation

from ..http2.conftest import DATA, END, END_HEADERS, frame
from .conftest import GREETING, Calls, Transport, begin, listening, message


class Begun(Calls):
    """A call without a task, which is answered when the test says so."""

    def __init__(self):
        super().__init__()
        self.answered = []

    def operations(self):
        return [*super().operations(), UnaryOperation("/t/begun", "inference", self.echo, self.begin)]

    def begin(self, _message, _context, answered, _decoded):
        self.answered.append(answered)
        return lambda: None


@pytest.mark.parametrize(
    ("calls", "answers", "at_once"),
    [
        pytest.param(1, 1, True, id="the only call"),
        pytest.param(3, 3, True, id="the last of three"),
        pytest.param(3, 2, False, id="one is not answered yet"),
    ],
)
def test_an_answer_is_written_at_once_if_the_client_waits_for_no_other(run, calls, answers, at_once):
    async def main():
        begun, transport = Begun(), Transport()
        async with listening(begun) as listener:
            connection = protocol.GrpcProtocol(listener._context)
            connection.connection_made(transport)
            connection.receive(GREETING)
            for stream in range(1, 2 * calls, 2):
                connection.receive(begin(stream, "/t/begun", END_HEADERS) + frame(DATA, END, stream, message(b"a")))
            transport.written.clear()

            for number in range(answers):
                begun.answered[number]([b"answer %d" % number])
            written_at_once = tuple(transport.written)
            await asyncio.sleep(0)
            written = tuple(transport.written)
            connection.connection_lost(None)
            return written_at_once, written

    written_at_once, written = run(main())

    assert written_at_once == (written if at_once else ())
    assert len(written) == 1
    assert [b"answer %d" % number in written[0] for number in range(calls)] == [
        number < answers for number in range(calls)
    ]


def test_an_answer_that_is_given_while_the_request_is_read_is_written_once_with_the_others(run):
    class AtOnce(Begun):
        def begin(self, message, _context, answered, _decoded):
            answered([message])
            return lambda: None

    async def main():
        transport = Transport()
        async with listening(AtOnce()) as listener:
            connection = protocol.GrpcProtocol(listener._context)
            connection.connection_made(transport)
            connection.receive(GREETING)
            transport.written.clear()
            connection.receive(
                b"".join(
                    begin(stream, "/t/begun", END_HEADERS) + frame(DATA, END, stream, message(b"m%d" % stream))
                    for stream in (1, 3)
                )
            )
            connection.connection_lost(None)
            return transport.written

    (written,) = run(main())

    assert b"m1" in written
    assert b"m3" in written
