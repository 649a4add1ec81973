"""What a call costs in the gRPC frontend alone: frames, decoding, encoding; no socket, no queue, no model."""

import asyncio
from collections.abc import Callable
from time import process_time
from types import SimpleNamespace

import numpy as np
from naiad import Request, Response
from naiad.errors import UnsupportedError
from naiad.options import Settings
from naiad_kit.access_log import AccessLog
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.forwarding import HeaderForwarding
from naiad_kit.tracing import NoTracing, Tracing
from naiad_tensors.laid_out import ArrayLayout, LaidOutArrays

from grpc_client import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INFER,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    add_sub_request,
    call_fields,
    frame,
)
from naiad_grpc.admission import Admission
from naiad_grpc.http2.endpoint import Limits
from naiad_grpc.inference import Inference
from naiad_grpc.options import OPTIONS
from naiad_grpc.server.methods import head_cache
from naiad_grpc.server.protocol import GrpcProtocol
from naiad_grpc.server.shared import ListenerContext
from naiad_grpc.service.operations import UnaryOperation
from naiad_grpc.wire.message_reader import prefix

_CALLS = 50_000
_ROUNDS = 5
_MOST = 1 << 30
_GRANTED = 256
"""What the client adds to the windows for an answer: to that of the stream before its data, as clients of grpc do."""
_NO_TABLE = b"\x20"
"""A header block may begin with the size 0 of the client's dynamic table: its blocks are cached from then on."""


def main() -> None:
    cost = min(seconds(_CALLS) for _ in range(_ROUNDS)) / _CALLS * 1e6
    print(f"a call with two FP32[16] and its answer: {cost:5.1f} µs of processor time")


def seconds(calls: int, access: AccessLog | None = None) -> float:
    """The processor time of so many calls on one connection, one after the other; with their lines in that log."""
    waiting: list[Callable[[], None]] = []
    protocol = _connection(waiting, access)
    request = add_sub_request("add_sub")
    content = prefix(len(request)) + request
    block = call_fields(INFER)
    increment = _GRANTED.to_bytes(4, "big")
    received = protocol.data_received
    started = process_time()
    for number in range(calls):
        stream = 2 * number + 3
        received(
            frame(HEADERS, END_HEADERS, stream, block)
            + frame(WINDOW_UPDATE, 0, stream, increment)
            + frame(DATA, END_STREAM, stream, content)
            + frame(WINDOW_UPDATE, 0, 0, increment)
        )
        waiting.pop()()
    used = process_time() - started
    if protocol.http2.ended or protocol.http2.streams:
        raise RuntimeError("the calls were not answered")
    return used


def _connection(waiting: list[Callable[[], None]], access: AccessLog | None) -> GrpcProtocol:
    """A connection whose client has sent its settings and given up its dynamic table.

    What answers a request is put into `waiting`.
    """
    answer = np.random.default_rng(0).random((1, 16), np.float32)
    layout = ArrayLayout([(name, "FP32", answer.dtype, (1, 16)) for name in ("OUTPUT0", "OUTPUT1")])
    call = SimpleNamespace(cancel=lambda: None, queue_ns=20_000, phases=(1_000, 30_000, 2_000), joined=(1, "full"))

    def submit(request: Request, deliver: Callable[[Response], None]) -> SimpleNamespace:
        waiting.append(lambda: deliver(Response("add_sub", 1, request.id, LaidOutArrays(layout, (answer, answer)))))
        return call

    def service(kind: type) -> NoTracing | AccessLog:
        if kind is Tracing:
            return NoTracing("")
        if kind is AccessLog and access is not None:
            return access
        raise UnsupportedError(f"there is no service {kind.__name__}")

    server = SimpleNamespace(submit=submit, model_config=None, labels=None, service=service)
    settings = Settings(OPTIONS, {})
    inference = Inference(server, HeaderForwarding("", ""), _MOST)
    operation = UnaryOperation(INFER, "inference", inference.infer, inference.begin)
    clock = iter(range(1 << 62))
    loop = SimpleNamespace(
        time=lambda: next(clock) * 1e-3,
        call_later=lambda *_: SimpleNamespace(cancel=int),
        call_soon=lambda call, *with_: call(*with_),
    )
    context = ListenerContext(
        loop, Admission(settings), head_cache([operation]), Limits(), _MOST, _MOST, 0, ByteBudget(_MOST), 10
    )
    protocol = GrpcProtocol(context)
    protocol.connection_made(_Nowhere())
    protocol.data_received(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0))
    protocol.data_received(frame(HEADERS, END_HEADERS | END_STREAM, 1, _NO_TABLE + call_fields(INFER)))
    return protocol


class _Nowhere(asyncio.Transport):
    """Takes what is written and does nothing."""

    def write(self, data: object) -> None:
        pass

    def writelines(self, list_of_data: object) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False


if __name__ == "__main__":
    main()
