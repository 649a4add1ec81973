"""Seeded sequences of HTTP/2 frames for the connection alone: legal ones, with some broken in every way."""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from random import Random

from bench.torture.http2 import PREFACE, call_fields, frame, message
from bench.torture.mutations import mutate_bytes
from naiad_grpc.http2.connection import Connection
from naiad_grpc.http2.endpoint import Limits
from naiad_grpc.http2.events import ConnectionEnded, DataReceived, RequestReceived
from naiad_grpc.http2.fields import RequestFields
from naiad_grpc.http2.header_blocks import HeadCache
from naiad_grpc.http2.streams import Buffer
from naiad_grpc.statuses import RpcError
from naiad_grpc.wire.heads import CallHead, call_head
from naiad_grpc.wire.message_reader import MessageReader

_BLOCKS = tuple(
    call_fields("/t/echo", *further)
    for further in ((), (("x-bin", "AAEC,AA"),), (("grpc-timeout", "1S"),), (("content-length", "5"),), (("A", "b"),))
)
_STREAMS = (0, 1, 1, 3, 5, 7, 2, 1 << 30)
_MOST = 100_000
_NO_TABLE = b"\x20"
"""The size 0 of the dynamic table at the start of a header block: the blocks that follow are cached."""


def _interpret(request: RequestFields) -> CallHead[bool]:
    return call_head(request, lambda path: path == "/t/echo")


def run_sequence(cache: HeadCache[CallHead[bool]], random: Random) -> str:
    """One connection from its preface to its end. Returns how it ended; raises whatever the code under test raises."""
    connection, now = Connection(cache, Limits(streams=4), 0.0), 0.0
    readers: dict[int, MessageReader] = {}
    answered: set[int] = set()
    sent = PREFACE + frame(4, 0, 0) if random.random() < 0.97 else random.randbytes(random.randrange(60))
    stream = 1
    requests, broken = random.choice(((0.9, 0.02), (0.4, 0.15), (0.0, 0.15)))
    if requests:
        sent += frame(4, 1, 0) + frame(1, 5, stream, _NO_TABLE + random.choice(_BLOCKS))
    for _ in range(random.randrange(1, 25)):
        if random.random() < requests:
            stream += 2
            built = _request(random, stream)
        else:
            built = _frame(random)
        sent += mutate_bytes(random, built) if random.random() < broken else built
        if random.random() < 0.5:
            continue
        cut = random.choice((len(sent), len(sent), random.randrange(len(sent) + 1)))
        part, sent = sent[:cut], sent[cut:]
        now += random.choice((0.0, 0.001, 1.0, 30.0))
        for event in _received(connection, part, readers, now):
            _act(connection, event, readers, answered, random, now)
        if random.random() < 0.1:
            connection.tick(now)
        if random.random() < 0.05:
            connection.drain(now)
        connection.outbox.frames.clear()
        if connection.ended:
            return "ended"
    return "open"


def _received(connection: Connection, part: bytes, readers: dict[int, MessageReader], now: float) -> Iterator[object]:
    """The events of these bytes. The rest of a long frame is received in the memory of its message, as the shell does.

    What follows it comes after the events have been acted on, which may have ended the message.
    """
    while part and not connection.ended:
        frames = connection.reader
        reader = readers.get(frames.long_stream) if frames.long_stream in connection.streams else None
        memory = None if reader is None else reader.room()
        data: bytes | memoryview = part
        if memory is not None:
            data = memory[: min(frames.missing, len(part))]
            data[:] = part[: len(data)]
        part = part[len(data) :]
        yield from connection.receive(data, now)


def _memory(_front: Buffer, size: int) -> memoryview:
    return memoryview(bytearray(size))


def _act(
    connection: Connection,
    event: object,
    readers: dict[int, MessageReader],
    answered: set[int],
    random: Random,
    now: float,
) -> None:
    """What the shell does: read metadata and messages, and answer some calls, each of them once."""
    if isinstance(event, ConnectionEnded):
        return
    if isinstance(event, RequestReceived):
        event.head.metadata()
        readers[event.stream_id] = MessageReader(_MOST, _memory)
    if isinstance(event, DataReceived) or (isinstance(event, RequestReceived) and event.content):
        try:
            readers[event.stream_id].read(event.content)
        except RpcError:
            readers[event.stream_id] = MessageReader(_MOST, _memory)
    stream_id = event.stream_id  # type: ignore[attr-defined]
    if stream_id not in connection.streams or stream_id in answered:
        return
    match random.randrange(6):
        case 0:
            answered.add(stream_id)
            size = random.choice((0, 5, 100_000))
            connection.respond(stream_id, b"", [bytes(size)], size, b"", now)
        case 1:
            answered.add(stream_id)
            connection.send_trailers(stream_id, b"", now)
        case 2:
            connection.pause(stream_id)
        case 3:
            connection.expect(stream_id, 1 << 20, random.random() < 0.5)


def _request(random: Random, stream: int) -> bytes:
    """A request in one piece as clients of grpc send it, most of the time."""
    parts = [frame(1, 4, stream, random.choice(_BLOCKS))]
    if random.random() < 0.5:
        parts.append(frame(8, 0, stream, random.choice((5, 65535, (1 << 31) - 1)).to_bytes(4, "big")))
    content = message(random.randbytes(random.choice((random.randrange(120), random.randrange(120), 70_000))))
    parts.append(frame(0, 1, stream, content))
    parts.append(frame(8, 0, 0, (5).to_bytes(4, "big")))
    if random.random() < 0.1:
        parts.insert(random.randrange(len(parts)), _frame(random))
    return b"".join(parts)


def _frame(random: Random) -> bytes:
    stream, flags = random.choice(_STREAMS), random.choice((0, 1, 4, 5, 8, 13, 0x25, random.randrange(256)))
    number = random.choice((0, 1, 65535, (1 << 31) - 1, random.randrange(1 << 32))).to_bytes(4, "big")
    match random.randrange(9):
        case 0 | 1:
            return frame(1, random.choice((4, 5, 5, flags)), stream, random.choice(_BLOCKS))
        case 2 | 3:
            size = random.choice((random.randrange(120), random.randrange(120), random.randrange(110_000)))
            return frame(0, random.choice((0, 1, flags)), stream, message(random.randbytes(size)))
        case 4:
            return frame(8, flags, stream, number)
        case 5:
            return frame(
                4, random.choice((0, 1)), 0, random.choice((b"", b"\0" + bytes((random.randrange(8),)) + number))
            )
        case 6:
            return frame(random.choice((3, 2)), flags, stream, random.choice((number, number + b"\x05")))
        case 7:
            return frame(random.choice((6, 7)), flags, 0, random.randbytes(8))
        case _:
            return frame(random.randrange(12), flags, stream, random.randbytes(random.randrange(200)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=13)
    arguments = parser.parse_args()
    cache, counts, until = HeadCache(_interpret), Counter[str](), time.monotonic() + arguments.seconds
    seed = arguments.seed
    while time.monotonic() < until:
        try:
            counts[run_sequence(cache, Random(seed))] += 1
        except Exception:
            print(f"the sequence of seed {seed} fails")
            raise
        seed += 1
    print(f"{counts.total():,} sequences of seeds from {arguments.seed}: {dict(counts)}")


if __name__ == "__main__":
    main()
