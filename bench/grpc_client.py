"""A client of gRPC on a plain socket, cheap enough not to be what is measured: HTTP/2 frames by hand, wide windows."""

import socket
import struct
from collections.abc import Iterator

import numpy as np

from naiad_grpc.messages import message_class

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK, END_STREAM, END_HEADERS = 1, 1, 4
_INITIAL_WINDOW_SIZE, _MOST = 4, 2**31 - 1
_DEFAULT_WINDOW = 65535


class GrpcClient:
    """A connection whose calls have one message, and come one after the other."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        window = struct.pack(">HI", _INITIAL_WINDOW_SIZE, _MOST)
        wider = struct.pack(">I", _MOST - _DEFAULT_WINDOW)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, window) + frame(WINDOW_UPDATE, 0, 0, wider))
        self._received = bytearray()
        self._next = 1

    def __enter__(self) -> "GrpcClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, path: str, message: bytes) -> Iterator[int]:
        """Send a call; yield how many bytes of content have come after each read, until the call has ended.

        Raises EOFError for a call that fails.
        """
        stream, self._next = self._next, self._next + 2
        content = b"\0" + len(message).to_bytes(4, "big") + message
        head = frame(HEADERS, END_HEADERS, stream, call_fields(path))
        self.socket.sendall(head + frame(DATA, END_STREAM, stream, content))
        received, ended = 0, False
        while not ended:
            part = self.socket.recv(1 << 18)
            if not part:
                raise EOFError("the server closed the connection")
            self._received += part
            size, ended = self._read_frames()
            received += size
            yield received

    def _read_frames(self) -> tuple[int, bool]:
        """Read the frames that are there: the bytes of content, and whether the call has ended."""
        received, size, ended, offset = self._received, 0, False, 0
        while len(received) - offset >= 9:
            length, kind, flags = (
                int.from_bytes(received[offset : offset + 3], "big"),
                *received[offset + 3 : offset + 5],
            )
            if len(received) - offset < 9 + length:
                break
            payload = bytes(received[offset + 9 : offset + 9 + length]) if kind in (PING, HEADERS) else b""
            offset += 9 + length
            if kind == DATA:
                size += length
            elif kind in (SETTINGS, PING) and not flags & ACK:
                self.socket.sendall(frame(kind, ACK, 0, payload))
            elif kind in (RST_STREAM, GOAWAY):
                raise EOFError(f"the server ended the call with a frame of kind {kind}")
            ended = ended or (kind == HEADERS and flags & END_STREAM != 0)
        del received[:offset]
        return size, ended


def add_sub_request(model: str) -> bytes:
    """A request with two FP32[1,16] inputs."""
    request = message_class("ModelInferRequest")(model_name=model)
    for name in ("INPUT0", "INPUT1"):
        request.inputs.add(name=name, datatype="FP32", shape=[1, 16])
        request.raw_input_contents.append(np.ones((1, 16), np.float32).tobytes())
    return request.SerializeToString()


def stream_request(count: int, size: int = 1024) -> bytes:
    """A request for `count` responses of `size` bytes."""
    request = message_class("ModelInferRequest")(model_name="stream")
    for name, value in (("COUNT", count), ("SIZE", size)):
        request.inputs.add(name=name, datatype="INT32", shape=[1])
        request.raw_input_contents.append(struct.pack("<i", value))
    return request.SerializeToString()


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """One frame (RFC 9113, section 4.1)."""
    return len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + content


def call_fields(path: str) -> bytes:
    """The header block of a call: literals without indexing (RFC 7541, section 6.2.2)."""
    pairs = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    texts = ((name.encode(), value.encode()) for name, value in pairs)
    return b"".join(b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in texts)
