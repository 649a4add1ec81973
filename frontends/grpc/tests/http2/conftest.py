"""A connection under test, and the frames of a client as bytes."""

import struct

import pytest

from naiad_grpc.http2.connection import Connection
from naiad_grpc.http2.endpoint import Limits
from naiad_grpc.http2.header_blocks import HeadCache, encode_fields

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END, END_HEADERS, PADDED, WITH_PRIORITY = 1, 4, 8, 32
FIELDS = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/a/b"),
    (b":authority", b"x"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
)
BLOCK = encode_fields(list(FIELDS))


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def block(*further):
    return encode_fields([*FIELDS, *further])


def number(value):
    return struct.pack(">I", value)


def setting(key, value):
    return struct.pack(">HI", key, value)


def headers(stream, flags=END_HEADERS, content=BLOCK):
    return frame(HEADERS, flags, stream, content)


def frames_in(data):
    """The frames in these bytes: (kind, flags, stream, payload)."""
    results, offset = [], 0
    while offset < len(data):
        length, kind, flags = int.from_bytes(data[offset : offset + 3], "big"), data[offset + 3], data[offset + 4]
        stream = int.from_bytes(data[offset + 5 : offset + 9], "big")
        results.append((kind, flags, stream, data[offset + 9 : offset + 9 + length]))
        offset += 9 + length
    return results


class Peer:
    """A client that sends bytes, with a clock of the test's own; `answers` are the frames of the server since."""

    def __init__(self, **limits):
        self.connection = Connection(HeadCache(lambda fields: fields), Limits(**limits), 0.0)
        self.now = 0.0
        self.answers = []

    def greet(self, *settings):
        self.send(PREFACE + frame(SETTINGS, 0, 0, b"".join(settings)) + frame(SETTINGS, 1, 0))
        self.answers.clear()
        return self

    def send(self, *parts):
        """The events of these bytes; views in them become bytes."""
        events = self.connection.receive(b"".join(parts), self.now)
        for event in events:
            if isinstance(getattr(event, "content", None), memoryview):
                event.content = bytes(event.content)
        self.collect()
        return events

    def collect(self):
        sent = b"".join(self.connection.outbox.frames)
        self.connection.outbox.frames.clear()
        if sent.startswith(b"HTTP/1.1"):
            self.answers.append(sent)
        else:
            self.answers += frames_in(sent)

    def errors(self):
        """(kind, stream, code) of each RST_STREAM and GOAWAY; the stream of GOAWAY is 0."""
        resets = [(kind, at, int.from_bytes(payload, "big")) for kind, _, at, payload in self.answers if kind == RST]
        ends = [(k, 0, int.from_bytes(payload[4:8], "big")) for k, _, _, payload in self.answers if k == GOAWAY]
        return resets + ends


@pytest.fixture
def peer():
    return Peer().greet()


@pytest.fixture
def make_peer():
    return Peer
