"""Messages of a stream in the byte budget, where DATA frames end within messages: what was passed on is released."""

import random
import zlib

import pytest

from naiad_grpc.service.operations import StreamOperation
from naiad_testing.loops import until

from ..http2.conftest import DATA, END_HEADERS, frame
from .conftest import GREETING, Calls, begin, connected, listening, message

FRAME = 16384
GZIP = (b"grpc-encoding", b"gzip")


class Takers(Calls):
    """Two streams that take every message, with a task and without one; `taken` counts them."""

    full = over = False
    taken = 0

    def operations(self):
        further = [
            StreamOperation("/t/run", "inference", self.run),
            StreamOperation("/t/fed", "inference", self.run, lambda _context: self),
        ]
        return [*super().operations(), *further]

    async def run(self, messages, _context):
        async for _ in messages:
            self.taken += 1
        yield b""

    def follow(self, on_ready, on_room):
        pass

    def feed(self, _message, _decoded=None):
        self.taken += 1

    def take(self):
        return None

    def finish(self):
        pass

    cancel = finish


def contents(compressed, count):
    """So many messages, one after the other, and how long one of them is."""
    gzipped = zlib.compress(random.Random(7).randbytes(1000), 1, 31)
    one = message(gzipped, 1) if compressed else message(bytes(100_000))
    return one * count, len(one)


@pytest.mark.parametrize("path", ["/t/run", "/t/fed"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_stream_is_charged_for_its_current_message_where_frames_straddle_messages(run, path, compressed):
    calls, count = Takers(), 10
    data, size = contents(compressed, count)

    async def main():
        async with listening(calls) as listener, connected(listener) as (_, writer):
            budget, charged = listener._context.budget, []
            writer.write(GREETING + begin(1, path, END_HEADERS, GZIP))
            start = 0
            for number in range(count - 1):  # each time the rest of one message and half of the next
                end = (number + 1) * size + size // 2
                for at in range(start, end, FRAME):
                    writer.write(frame(DATA, 0, 1, data[at : min(at + FRAME, end)]))
                start = end
                await until(lambda: calls.taken > number)  # noqa: B023 - awaited at once
                charged.append(budget.reserved)
            return charged

    charged = run(main())

    assert max(charged) <= (1032 * size if compressed else size)


@pytest.mark.parametrize("path", ["/t/run", "/t/fed"])
def test_many_messages_in_one_go_are_charged_no_longer_than_they_wait(run, path):
    calls, count = Takers(), 200
    data, size = contents(True, count)

    async def main():
        async with listening(calls) as listener, connected(listener) as (_, writer):
            writer.write(GREETING + begin(1, path, END_HEADERS, GZIP))
            for at in range(0, len(data), FRAME):
                writer.write(frame(DATA, 0, 1, data[at : at + FRAME]))
            await until(lambda: calls.taken >= count)
            return listener._context.budget.peak

    assert run(main()) < len(data) + 3 * 1032 * size
