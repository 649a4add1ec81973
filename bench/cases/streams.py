"""One request with a thousand responses: what a response costs when a model streams, and when the first one comes."""

import json
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median

from cases.case import Case
from grpc_client import INFER, STREAM, GrpcClient, add_sub_request, stream_request
from load import LoadError
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_COUNT, _SIZE = 1000, 1024
_AT_ONCE = 64
_CALLS = 200
_END = b"\r\n0\r\n\r\n"
_HTTP = "HTTP generate_stream: responses/s"
_GRPC = "gRPC ModelStreamInfer: responses/s"
_TOGETHER = f"gRPC, {_AT_ONCE} streams at once: responses/s"
_FIRST = "gRPC, time to the first of the responses, ms"
_UNARY = "gRPC, time of a unary call, ms"
_RATIO = "gRPC, first response to unary call"


def measure(run: Run) -> Sequence[Row]:
    times = 3 if run.quick else 15

    def once(running: Running) -> dict[str, float]:
        port = running.ports.grpc
        first, unary = _latencies(port, _CALLS // 10 if run.quick else _CALLS)
        return {
            _HTTP: _per_second(lambda: _events(running.port), times),
            _GRPC: _per_second(lambda: _messages(port), times),
            _TOGETHER: _AT_ONCE * _per_second(lambda: _together(port), max(times // 5, 1)),
            _FIRST: first * 1e3,
            _UNARY: unary * 1e3,
            _RATIO: first / unary,
        }

    twice = Goal(least=2, of_ratio=True)
    return side_by_side(run, once).rows({_GRPC: twice, _TOGETHER: twice, _RATIO: Goal(most=1.5)})


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
    body = json.dumps({"COUNT": _COUNT, "SIZE": _SIZE}).encode()
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
    with GrpcClient(port) as client:
        return _received(client)


def _received(client: GrpcClient) -> int:
    """The responses of one stream: those that its bytes are enough for."""
    return min(max(client.call(STREAM, stream_request(_COUNT, _SIZE))) // _SIZE, _COUNT)


def _together(port: int) -> int:
    """The fewest responses that one of the streams got; each has a connection and a thread."""
    with ExitStack() as stack:
        clients = [stack.enter_context(GrpcClient(port)) for _ in range(_AT_ONCE)]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return min(threads.map(_received, clients))


def _latencies(port: int, calls: int) -> tuple[float, float]:
    """The medians of the seconds to a stream's first response and of a unary call, taken in turns."""
    firsts, unaries = [], []
    with GrpcClient(port) as client:
        for _ in range(calls):
            started = time.perf_counter()
            for _ in client.call(INFER, add_sub_request("add_sub")):
                pass
            unaries.append(time.perf_counter() - started)
            started, first = time.perf_counter(), 0.0
            for size in client.call(STREAM, stream_request(_COUNT // 20, _SIZE)):
                first = first or (time.perf_counter() - started if size else 0.0)
            firsts.append(first)
    return median(firsts), median(unaries)


CASE = Case(
    "stream",
    "A stream of responses",
    f"One request to a decoupled `TritonPythonModel` that sends {_COUNT:,} responses of 1 KB, one after the other; the "
    f"median of several requests, each on a connection of its own. Then {_AT_ONCE} such requests at once. The time to "
    f"the first response is that of a stream of {_COUNT // 20}, in turns with unary calls of `add_sub`. The client of "
    "gRPC is [grpc_client.py](grpc_client.py), because grpcio's own takes longer than the servers.",
    measure,
)
