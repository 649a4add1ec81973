"""What a response of a stream costs over HTTP: in the frontend alone, and in a whole server from model to client."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import naiad
import numpy as np
import uvloop
from naiad import Request, Response, Server, Tensor
from naiad.backend import BackendTraits, Batch, Reply
from naiad_config import ModelConfig
from uvicorn.server import ServerState

import naiad_http
from naiad_http.connection_context import ConnectionContext
from naiad_http.heads import HeadReader
from naiad_http.infer import Inference
from naiad_http.protocol import HttpProtocol
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions

_RESPONSES = 1000
_TEXT = np.array([b"x" * 1024], object)
_TOGETHER = 16
"""So many responses the frontend alone gets in one turn of the event loop."""
_ROUNDS = 30
_REQUEST = b"POST /v2/models/stream/generate_stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
_END = b"\r\n0\r\n\r\n"
_CONFIG = """
backend: "streaming" model_transaction_policy { decoupled: true }
input [{ name: "COUNT" data_type: TYPE_INT32 dims: [1] optional: true }]
output [{ name: "TEXT" data_type: TYPE_STRING dims: [1] }]
"""


def main() -> None:
    if sys.argv[1:2] == ["client"]:
        print(json.dumps(_client_seconds(int(sys.argv[2]))))
        return
    cost = min(_frontend_seconds() for _ in range(_ROUNDS)) / _RESPONSES * 1e6
    print(f"frontend alone: {cost:5.2f} µs of processor time for a response of 1 KB")
    uvloop.run(_measure_server())


def _frontend_seconds() -> float:
    """The processor time of one stream without socket, queue and model."""
    turns: list[Callable[[], None]] = []
    callbacks: list[Callable[[Response], None]] = []
    call = SimpleNamespace(cancel=lambda: None)

    def submit(_request: Request, deliver: Callable[[Response], None], streams: bool = False) -> SimpleNamespace:
        callbacks.append(deliver)
        return call

    model, tracing = ModelConfig(name="stream"), SimpleNamespace(active=False)
    server = SimpleNamespace(model_config=lambda *_: model, labels=None, service=lambda kind: tracing)
    context = ConnectionContext(
        submit, Inference(server, 1 << 20), HeadReader(RequestHeadReader("", Restrictions())), 1 << 20
    )
    loop = SimpleNamespace(time=lambda: 0.0, call_later=lambda *_: None, call_soon=turns.append)
    protocol = HttpProtocol(context, None, ServerState(), {}, loop)
    protocol.connection_made(_Nowhere())
    started = time.process_time()
    protocol.get_buffer(-1)[: len(_REQUEST)] = _REQUEST
    protocol.buffer_updated(len(_REQUEST))
    for number in range(_RESPONSES):
        callbacks[0](Response("stream", 1, "", {"TEXT": Tensor("TEXT", "BYTES", (1,), _TEXT)}, final=False))
        if number % _TOGETHER == 0:
            turns.pop()()
    callbacks[0](Response("stream", 1, "", {}))
    return time.process_time() - started


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


class Streaming:
    """Plugin, backend, model and instance: sends the responses one after the other."""

    traits = BackendTraits(name="streaming", files={"streaming": ""})

    @naiad.hookimpl
    def naiad_backends(self) -> list["Streaming"]:
        return [self]

    def complete(self, context: naiad.backend.ModelContext) -> ModelConfig:
        return context.config

    def load(self, _context: object) -> "Streaming":
        return self

    def instantiate(self, _placement: object) -> "Streaming":
        return self

    def execute(self, batch: Batch) -> list[None]:
        sender = batch.sender(0)
        for _ in range(_RESPONSES):
            sender.send(Reply({"TEXT": _TEXT}))
        sender.send(None, final=True)
        return [None]

    def close(self) -> None:
        pass


async def _measure_server() -> None:
    with TemporaryDirectory() as folder:
        model = Path(folder) / "stream"
        (model / "1").mkdir(parents=True)
        (model / "1" / "streaming").touch()
        (model / "config.pbtxt").write_text(_CONFIG)
        options = {"http-port": 0, "http-address": "127.0.0.1"}
        async with Server(model_repository=[folder], plugins=[Streaming(), naiad_http], options=options) as server:
            port = server.plugins.frontends()["http"].port
            started = time.process_time()
            command = [sys.executable, __file__, "client", str(port)]
            message = await asyncio.to_thread(subprocess.check_output, command)
            seconds = time.process_time() - started
    first, whole = json.loads(message)
    print(f"whole server:   {_RESPONSES / whole:8,.0f} responses/s, the first after {first * 1e6:.0f} µs,")
    print(f"                {seconds / _ROUNDS / _RESPONSES * 1e6:5.2f} µs of processor time for a response")


def _client_seconds(port: int) -> tuple[float, float]:
    """Seconds to the first bytes, and to the end of the stream; medians."""
    firsts, wholes = [], []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(_ROUNDS):
            started = time.perf_counter()
            connection.sendall(_REQUEST)
            piece = tail = connection.recv(1 << 18)
            firsts.append(time.perf_counter() - started)
            events = piece.count(b"data: ")
            while not tail.endswith(_END):
                piece = connection.recv(1 << 18)
                if not piece:
                    raise SystemExit("the stream ended early")
                events += piece.count(b"data: ")
                tail = (tail + piece)[-len(_END) :]
            wholes.append(time.perf_counter() - started)
            if events < _RESPONSES - 20:  # some marks lie across two pieces
                raise SystemExit(f"{events} events came instead of {_RESPONSES}")
    return median(firsts), median(wholes)


if __name__ == "__main__":
    main()
