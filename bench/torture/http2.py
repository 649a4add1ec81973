"""Just enough of an HTTP/2 client to send what grpc clients never send: frames by hand, within the peer's windows."""

import socket
import struct
from types import TracebackType

from bench.torture.wire import connect

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
_INITIAL_WINDOW = 4


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """One frame (RFC 9113, 4.1)."""
    return len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + content


def fields(pairs: list[tuple[str, str]]) -> bytes:
    """A field block: literals without indexing and without Huffman codes (RFC 7541, 6.2.2)."""
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in pairs)


def call_fields(path: str, *further: tuple[str, str]) -> bytes:
    """The fields that begin a call of gRPC."""
    return fields(
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "torture"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            *further,
        ]
    )


def message(content: bytes, compressed: bool = False) -> bytes:
    """A message of gRPC with its prefix of five bytes."""
    return bytes((compressed,)) + len(content).to_bytes(4, "big") + content


class Connection:
    """A connection after its preface, whose calls have the streams 1, 3, 5 and so on."""

    def __init__(self, port: int, timeout: float = 20.0) -> None:
        self.socket: socket.socket = connect(port, timeout)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0))
        self._received = b""
        self._next = 1
        self._window = self._initial = 65535
        self._windows: dict[int, int] = {}
        self.ended: set[int] = set()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()

    def call(self, block: bytes, content: bytes, end: bool = True) -> int:
        """Begin a call and send its content; returns its stream."""
        stream, self._next = self._next, self._next + 2
        self.socket.sendall(frame(HEADERS, _END_HEADERS, stream, block))
        self._windows[stream] = self._initial
        offset = 0
        while offset < len(content) and stream not in self.ended:
            size = min(len(content) - offset, self._window, self._windows[stream], 16384)
            if size <= 0:
                self.read_frame()
                continue
            last = end and offset + size == len(content)
            self.socket.sendall(frame(DATA, _END_STREAM if last else 0, stream, content[offset : offset + size]))
            offset += size
            self._window -= size
            self._windows[stream] -= size
        return stream

    def wait(self, stream: int) -> None:
        """Read until the call has ended. Raises OSError or EOFError where the connection ends first."""
        while stream not in self.ended:
            self.read_frame()

    def read_frame(self) -> int:
        """Read one frame, do what it asks for, and return its kind."""
        top = self._exactly(9)
        length, kind, flags = int.from_bytes(top[:3], "big"), top[3], top[4]
        stream = int.from_bytes(top[5:], "big")
        content = self._exactly(length)
        if kind == SETTINGS and not flags & _ACK:
            self._settle(content)
            self.socket.sendall(frame(SETTINGS, _ACK, 0))
        elif kind == PING and not flags & _ACK:
            self.socket.sendall(frame(PING, _ACK, 0, content))
        elif kind == WINDOW_UPDATE:
            self._widen(stream, int.from_bytes(content, "big"))
        elif kind == GOAWAY:
            raise EOFError(f"GOAWAY {content[4:][:100]!r}")
        elif kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & _END_STREAM):
            self.ended.add(stream)
        if kind == DATA and content:
            update = struct.pack(">I", len(content))
            self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, update) + frame(WINDOW_UPDATE, 0, stream, update))
        return kind

    def _settle(self, content: bytes) -> None:
        for number, value in struct.iter_unpack(">HI", content):
            if number == _INITIAL_WINDOW:
                self._windows = {stream: size + value - self._initial for stream, size in self._windows.items()}
                self._initial = value

    def _widen(self, stream: int, size: int) -> None:
        if not stream:
            self._window += size
        elif stream in self._windows:
            self._windows[stream] += size

    def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            part = self.socket.recv(1 << 16)
            if not part:
                raise EOFError("the server closed the connection")
            self._received += part
        taken, self._received = self._received[:size], self._received[size:]
        return taken


def _text(value: str) -> bytes:
    """A string of HPACK: its length in a prefix of seven bits, then the bytes."""
    raw = value.encode()
    if len(raw) < 127:
        return bytes((len(raw),)) + raw
    rest, length = len(raw) - 127, b"\x7f"
    while rest >= 128:
        length += bytes((rest % 128 + 128,))
        rest //= 128
    return length + bytes((rest,)) + raw
