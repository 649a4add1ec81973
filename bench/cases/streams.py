"""One request with a thousand responses: what a response costs when a model streams."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import grpc

from cases.case import Case
from load import LoadError
from mixed_traffic import stream_request
from report import Row
from rounds import Run, side_by_side
from servers import Running

_COUNT = 1000
_STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
_END = b"\r\n0\r\n\r\n"


def measure(run: Run) -> Sequence[Row]:
    times = 3 if run.quick else 15

    def once(running: Running) -> dict[str, float]:
        return {
            "HTTP generate_stream: responses/s": _per_second(lambda: _events(running.port), times),
            "gRPC ModelStreamInfer: responses/s": _per_second(lambda: _messages(running.ports.grpc), times),
        }

    return side_by_side(run, once).rows({})


def _per_second(ask: Callable[[], int], times: int) -> float:
    ask()
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        count = ask()
        seconds.append(time.perf_counter() - started)
        if count != _COUNT:
            raise LoadError(f"{count} responses came instead of {_COUNT}")
    return _COUNT / median(seconds)


def _events(port: int) -> int:
    body = json.dumps({"COUNT": _COUNT, "SIZE": 1024}).encode()
    head = f"POST /v2/models/stream/generate_stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode() + body)
        pieces = []
        while not pieces or not b"".join(pieces[-2:]).endswith(_END):
            piece = connection.recv(1 << 18)
            if not piece:
                raise LoadError(f"the stream ended early: {b''.join(pieces)[:200]!r}")
            pieces.append(piece)
    return b"".join(pieces).count(b"data: {")


def _messages(port: int) -> int:
    def requests() -> Iterator[bytes]:
        yield stream_request(_COUNT)

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        return sum(1 for _ in channel.stream_stream(_STREAM)(requests()))


CASE = Case(
    "stream",
    "A stream of responses",
    f"One request to a decoupled `TritonPythonModel` that sends {_COUNT:,} responses of 1 KB, one after the other; the "
    "median of several requests, each on a connection of its own.",
    measure,
)
