"""What a request costs in the HTTP frontend alone: parsing, decoding, encoding; no socket, no queue, no model."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from time import process_time
from types import SimpleNamespace

import numpy as np
from naiad import Request, Response
from naiad_kit.access_log import AccessLog
from naiad_tensors.laid_out import ArrayLayout, LaidOutArrays
from uvicorn.server import ServerState

from naiad_http.access_lines import LoggedProtocol
from naiad_http.connection_context import ConnectionContext
from naiad_http.heads import HeadReader
from naiad_http.infer import Inference
from naiad_http.protocol import HttpProtocol
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions

_LIMIT = 1 << 26
_REQUESTS = 50_000
_ROUNDS = 5
_NAMES = ("INPUT0", "INPUT1")


def main() -> None:
    for name, content in (("binary", binary_request()), ("JSON", json_request())):
        cost = min(seconds(content, _REQUESTS) for _ in range(_ROUNDS)) / _REQUESTS * 1e6
        print(f"{name:6} request of two FP32[16] and its answer: {cost:5.1f} µs of processor time")


def binary_request() -> bytes:
    """As perf_analyzer sends it."""
    tensors = [{**_tensor(name), "parameters": {"binary_data_size": 64}} for name in _NAMES]
    outputs = [{"name": f"OUTPUT{number}", "parameters": {"binary_data": True}} for number in range(2)]
    front = json.dumps({"id": "", "inputs": tensors, "outputs": outputs}).encode()
    return _post(front + bytes(128), f"Inference-Header-Content-Length: {len(front)}\r\n")


def json_request() -> bytes:
    """The same in JSON."""
    tensors = [{**_tensor(name), "data": [number + 0.5 for number in range(16)]} for name in _NAMES]
    return _post(json.dumps({"inputs": tensors}).encode())


class _Nowhere(asyncio.Transport):
    """Takes what is written and does nothing."""

    def write(self, data: object) -> None:
        pass

    def writelines(self, list_of_data: object) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False


def seconds(content: bytes, requests: int, access: AccessLog | None = None) -> float:
    """The processor time of so many requests on one connection, one after the other; with their lines in that log."""
    answer = np.random.default_rng(0).random((1, 16), np.float32)
    layout = ArrayLayout([(name, "FP32", answer.dtype, (1, 16)) for name in ("OUTPUT0", "OUTPUT1")])
    call = SimpleNamespace(cancel=lambda: None, queue_ns=20_000, phases=(1_000, 30_000, 2_000), joined=(1, "full"))
    waiting: list[tuple[Request, Callable[[Response], None]]] = []

    def submit(request: Request, deliver: Callable[[Response], None]) -> SimpleNamespace:
        waiting.append((request, deliver))
        return call

    tracing = SimpleNamespace(active=False)
    server = SimpleNamespace(model_config=None, labels=None, service=lambda kind: tracing)
    context = ConnectionContext(
        submit, Inference(server, _LIMIT), HeadReader(RequestHeadReader("", Restrictions())), _LIMIT
    )
    loop = SimpleNamespace(time=lambda: 0.0, call_later=lambda *_: None, call_soon=lambda call, *with_: call(*with_))
    make = HttpProtocol if access is None else partial(LoggedProtocol, access)
    protocol = make(context, None, ServerState(), {}, loop)
    protocol.connection_made(_Nowhere())
    started = process_time()
    for _ in range(requests):
        protocol.get_buffer(-1)[: len(content)] = content
        protocol.buffer_updated(len(content))
        request, deliver = waiting.pop()
        deliver(Response("add_sub", 1, request.id, LaidOutArrays(layout, (answer, answer))))
    return process_time() - started


def _tensor(name: str) -> dict[str, object]:
    return {"name": name, "datatype": "FP32", "shape": [1, 16]}


def _post(body: bytes, header: str = "") -> bytes:
    head = (
        f"POST /v2/models/add_sub/infer HTTP/1.1\r\nHost: localhost:8000\r\n{header}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


if __name__ == "__main__":
    main()
