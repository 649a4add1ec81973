"""Calls that end in the same bytes: the end of the first may bring the answer of the next, whose stream is gone."""

import asyncio

import pytest

from naiad_grpc.server import protocol
from naiad_grpc.service.operations import StreamOperation, UnaryOperation
from naiad_grpc.statuses import Code, RpcError

from ..http2.conftest import DATA, END, END_HEADERS, RST, frame, number
from .conftest import GREETING, Calls, Transport, begin, listening, message


class Ordered(Calls):
    """Calls without tasks: the end of one answers all others, as a model does that preserves the order of answers."""

    def __init__(self, result):
        super().__init__()
        self.result = result
        self.answers = {}

    def operations(self):
        return [
            *super().operations(),
            UnaryOperation("/t/ordered", "inference", self.echo, self.begin),
            StreamOperation("/t/streamed", "inference", self.stream, lambda _context: Answers(self)),
        ]

    def begin(self, _message, _context, answered, _decoded):
        call = object()
        self.answers[call] = lambda: answered(self.result)
        return lambda: self.end(call)

    def end(self, call):
        self.answers.pop(call, None)
        while self.answers:
            _, answer = self.answers.popitem()
            answer()
            self.noted.append("answered")


class Answers:
    """A stream that is full until it is answered."""

    over = False

    def __init__(self, calls):
        self.calls = calls
        self.full = False
        self.ready = []

    def follow(self, on_ready, on_room):
        self.on_ready, self.on_room = on_ready, on_room

    def feed(self, message, decoded=None):
        self.full = True
        self.calls.answers[self] = self.answer

    def answer(self):
        self.full = False
        self.ready.append(self.calls.result)
        self.on_ready()
        self.on_room()

    def take(self):
        if self.ready and isinstance(self.ready[-1], RpcError):
            raise self.ready.pop()
        return self.ready.pop() if self.ready else None

    def finish(self):
        pass

    def cancel(self):
        self.calls.end(self)


RESETS = frame(RST, 0, 1, number(8)) + frame(RST, 0, 3, number(8))
VIOLATION = frame(DATA, 0, 0, b"")


@pytest.mark.parametrize("end", [RESETS, VIOLATION], ids=["two resets", "a violation"])
@pytest.mark.parametrize("result", [[b"answer"], RpcError(Code.ABORTED, "no")], ids=["answer", "status"])
@pytest.mark.parametrize("path", ["/t/ordered", "/t/streamed"])
def test_an_answer_to_a_call_that_has_ended_meanwhile_is_dropped(run, path, result, end, caplog):
    async def main():
        calls = Ordered(result)
        async with listening(calls) as listener:
            connection = protocol.GrpcProtocol(listener._context)
            connection.connection_made(Transport())
            connection.receive(GREETING)
            for stream in (1, 3):  # a further message to a stream has to wait
                sent = frame(DATA, 0, stream, 2 * message(b"a"))
                content = sent if path == "/t/streamed" else frame(DATA, END, stream, message(b"a"))
                connection.receive(begin(stream, path, END_HEADERS) + content)
            connection.receive(end)
            in_flight = listener.calls_in_flight
            await asyncio.sleep(0)
            connection.connection_lost(None)
        return set(calls.noted), in_flight

    assert run(main()) == ({"answered"}, 0)
    assert caplog.text == ""
