"""Streams whose messages are compressed in both directions at once: their order stays."""

import asyncio
import zlib

from naiad_grpc.server import protocol
from naiad_grpc.service.operations import StreamOperation

from ..http2.conftest import DATA, END_HEADERS, frame
from .conftest import GREETING, Calls, Transport, begin, listening, message

GZIP = (b"grpc-encoding", b"gzip"), (b"grpc-accept-encoding", b"gzip")


class Jobs:
    """Codec threads whose work is done when the test says so."""

    def __init__(self):
        self.waiting = []

    def submit(self, work, on_done, _loop):
        self.waiting.append((work, on_done))
        return self

    def finish(self, number=0):
        work, on_done = self.waiting.pop(number)
        on_done(work())

    def cancel(self):
        pass

    def close(self):
        pass


class Answers(Calls):
    """A stream without tasks: notes the messages that it is fed, and answers the first with one that is long."""

    full = over = False

    def operations(self):
        return [*super().operations(), StreamOperation("/t/fed", "inference", self.stream, lambda _context: self)]

    def follow(self, on_ready, on_room):
        self.on_ready = on_ready
        self.ready = []

    def feed(self, message, decoded=None):
        self.noted.append(message[:1])
        if len(self.noted) == 1:
            self.ready.append([bytes(100_000)])
            self.on_ready()

    def take(self):
        return self.ready.pop() if self.ready else None

    def finish(self):
        pass

    cancel = finish


def compressed(content):
    return message(zlib.compress(content, 0, 31), 1)


async def connect(listener):
    connection = protocol.GrpcProtocol(listener._context)
    connection.connection_made(Transport())
    connection.receive(GREETING + begin(1, "/t/fed", END_HEADERS, *GZIP))
    return connection


def test_a_message_is_not_overtaken_while_an_answer_is_compressed(run):
    async def main():
        calls, jobs = Answers(), Jobs()
        async with listening(calls, **{"grpc-infer-response-compression-level": "low"}) as listener:
            listener._context.threads = jobs
            connection = await connect(listener)
            connection.receive(frame(DATA, 0, 1, message(b"1")))  # its answer is being compressed
            connection.receive(frame(DATA, 0, 1, compressed(b"2" * 1000) + message(b"3")))
            before = len(jobs.waiting)
            jobs.finish()
            connection.receive(frame(DATA, 0, 1, message(b"4")))
            jobs.finish()
            connection.connection_lost(None)
        return before, calls.noted

    assert run(main()) == (2, [b"1", b"2", b"3", b"4"])


def test_messages_are_taken_while_an_answer_is_compressed(run):
    async def main():
        calls, jobs = Answers(), Jobs()
        async with listening(calls, **{"grpc-infer-response-compression-level": "low"}) as listener:
            listener._context.threads = jobs
            connection = await connect(listener)
            connection.receive(frame(DATA, 0, 1, message(b"1") + message(b"2")))
            await asyncio.sleep(0)
            waiting = len(jobs.waiting)
            connection.connection_lost(None)
        return waiting, calls.noted

    assert run(main()) == (1, [b"1", b"2"])
