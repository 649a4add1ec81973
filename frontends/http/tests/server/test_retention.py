"""Payloads of 1 MB die by reference counts alone, whatever becomes of their requests: the garbage collector is off."""

import asyncio
import gc
import gzip
import json
import logging
import socket
import tracemalloc
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

import pytest

import naiad_http
import naiad_shared_memory
from naiad import Server
from naiad.errors import QueueFullError
from naiad_http.protocol import HttpProtocol
from naiad_testing.frontends.certificates import Authority
from naiad_testing.retention import freed_by_reference_counts

from .certificates import client_context

SIZE = 1_000_000
KEPT_AT_MOST = 200_000
RUNS = 2
TLS_BUFFER = 300_000
BYTES = b"x" * SIZE
INFER = "/v2/models/mirror_uint8/infer"


class Caller:
    """A client of the server under test, on the server's own loop, without a stream that keeps what it read."""

    def __init__(self, port, gate):
        self.port = port
        self.gate = gate

    @asynccontextmanager
    async def connected(self):
        """A plain connection, which is reset at the end of the block."""
        with socket.socket() as plain:
            plain.setblocking(False)
            await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", self.port))
            yield SimpleNamespace(
                send=lambda content: asyncio.get_running_loop().sock_sendall(plain, content),
                receive=lambda: asyncio.get_running_loop().sock_recv(plain, 65536),
                socket=plain,
            )

    async def answer(self, wire):
        """The status of the answer, whose body is read to its end and dropped."""
        head = b""
        while b"\r\n\r\n" not in head:
            head += await wire.receive()
        head, _, body = head.partition(b"\r\n\r\n")
        lowered = head.lower()
        if b"transfer-encoding: chunked" in lowered:
            while not body.endswith(b"0\r\n\r\n"):
                body = body[-8:] + await wire.receive()
        else:
            rest = int(lowered.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]) - len(body)
            while rest:
                rest -= len(await wire.receive())
        return int(head.split()[1])

    async def ask(self, content, status=200):
        """Send a request and read its answer."""
        async with self.connected() as wire:
            await wire.send(content)
            assert await self.answer(wire) == status

    async def settle(self):
        """Let the server read and answer what it has."""
        for _ in range(2):
            await self.ask(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")


def post(path, body, *headers, length=None):
    lines = [f"POST {path} HTTP/1.1", "Host: h", *headers]
    if length is not None or not any(line.startswith("Transfer-Encoding") for line in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(body):
    pieces = [body[start : start + 50_000] for start in range(0, len(body), 50_000)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def binary(path=INFER, *headers, shape=SIZE, coding=None, **parameters):
    """An infer request of one binary tensor of 1 MB, whose answer is as large."""
    tensor = {"name": "X", "datatype": "UINT8", "shape": [shape], "parameters": {"binary_data_size": SIZE}}
    front = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True, **parameters}}).encode()
    lines = (f"Inference-Header-Content-Length: {len(front)}", *headers)
    if coding == "chunked":
        return post(path, chunked(front + BYTES), "Transfer-Encoding: chunked", *lines)
    if coding == "gzip":
        return post(path, gzip.compress(front + BYTES), "Content-Encoding: gzip", *lines)
    return post(path, front + BYTES, *lines)


def in_json(path=INFER, shape=SIZE // 4, count=SIZE // 4):
    data = b",".join([b"123"] * count)
    return post(path, b'{"inputs":[{"name":"X","datatype":"UINT8","shape":[%d],"data":[%b]}]}' % (shape, data))


def generate(action, model="mirror_string", **members):
    document = {"X": "x" * SIZE, **members}
    return post(f"/v2/models/{model}/{action}", json.dumps(document).encode())


def asking(content, status=200):
    async def outcome(caller):
        await caller.ask(content, status)

    return outcome


def leaving(content, part):
    """A client that resets its connection when so much of its request is sent."""

    async def outcome(caller):
        async with caller.connected() as wire:
            await wire.send(content[: int(len(content) * part)])
            await caller.settle()

    return outcome


def leaving_while_it_executes(content):
    async def outcome(caller):
        async with caller.connected() as wire:
            await wire.send(content)
            await asyncio.to_thread(caller.gate.entered.wait, 30)
        await caller.settle()
        caller.gate.opened.set()

    return outcome


def late(content):
    async def outcome(caller):
        await caller.ask(content, 504)
        caller.gate.opened.set()

    return outcome


async def pipelined_and_left(caller):
    """One request executes, and the next ones are there already when the client leaves."""
    async with caller.connected() as wire:
        await wire.send(binary(wait=True))
        await asyncio.to_thread(caller.gate.entered.wait, 30)
        await wire.send(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n" * 1000)
        await caller.settle()
    await caller.settle()
    caller.gate.opened.set()


OUTCOMES = {
    "answered, binary": asking(binary()),
    "answered, JSON": asking(in_json()),
    "answered, chunked": asking(binary(coding="chunked")),
    "answered, gzip": asking(binary(coding="gzip")),
    "answered in gzip": asking(binary(INFER, "Accept-Encoding: gzip")),
    "unknown model": asking(binary("/v2/models/unknown/infer"), 404),
    "unknown model, JSON": asking(in_json("/v2/models/unknown/infer"), 404),
    "unknown model, gzip": asking(binary("/v2/models/unknown/infer", coding="gzip"), 404),
    "no JSON": asking(post(INFER, BYTES), 400),
    "wrong shape": asking(binary(shape=7), 400),
    "wrong shape, JSON": asking(in_json(shape=7), 400),
    "wrong model": asking(binary("/v2/models/mirror_fp32/infer"), 400),
    "wrong length of the JSON": asking(post(INFER, BYTES, "Inference-Header-Content-Length: -1"), 400),
    "restricted": asking(post("/v2/logging", BYTES), 403),
    "no such route": asking(post("/nowhere", BYTES), 404),
    "bad version": asking(binary("/v2/models/mirror_uint8/versions/0/infer"), 400),
    "too large": asking(post(INFER, BYTES, length=10 * SIZE), 400),
    "too large, gzip": asking(post(INFER, gzip.compress(bytes(4 * SIZE)), "Content-Encoding: gzip"), 400),
    "no gzip": asking(post(INFER, BYTES, "Content-Encoding: gzip"), 400),
    "queue full": asking(binary("/v2/models/full/infer"), 503),
    "queue full, gzip": asking(binary("/v2/models/full/infer", coding="gzip"), 503),
    "model refuses": asking(binary(refuse="no"), 400),
    "model raises": asking(binary(fail="no"), 500),
    "model raises, gzip": asking(binary(fail="no", coding="gzip"), 500),
    "deadline": late(binary(INFER, "Request-Timeout: 0.05", wait=True)),
    "deadline, gzip": late(binary(INFER, "Request-Timeout: 0.05", coding="gzip", wait=True)),
    "leaves within the head": leaving(post(INFER, b"", "A: " + "x" * 60_000), 0.9),
    "leaves within the body": leaving(binary(), 0.9),
    "leaves within the body, chunked": leaving(binary(coding="chunked"), 0.9),
    "leaves while it executes": leaving_while_it_executes(binary(wait=True)),
    "leaves while it executes, gzip": leaving_while_it_executes(binary(coding="gzip", wait=True)),
    "leaves with requests pipelined": pipelined_and_left,
    "leaves within the answer": leaving(binary(), 1),
    "generate": asking(generate("generate")),
    "generate_stream": asking(generate("generate_stream")),
    "generate, wrong datatype": asking(generate("generate", "mirror_int8"), 400),
    "generate, fails": asking(generate("generate", fail="no"), 500),
    "generate_stream, fails": asking(generate("generate_stream", fail="no"), 500),
    "generate_stream, left": leaving(generate("generate_stream"), 1),
    "generate_stream, left while it executes": leaving_while_it_executes(generate("generate_stream", wait=True)),
    "admin route": asking(post("/v2/repository/index", json.dumps({"x": "x" * 60_000}).encode())),
    "admin route, no JSON": asking(post("/v2/repository/index", BYTES[:60_000]), 400),
    "admin route, too large": asking(post("/v2/repository/index", BYTES), 413),
    "admin route, file": asking(
        post(
            "/v2/repository/models/unknown/load",
            json.dumps({"parameters": {"file:1/a": "eHh4" * (SIZE // 4)}}).encode(),
        ),
        400,
    ),
    "admin route, unknown model": asking(
        post("/v2/repository/models/unknown/load", json.dumps({"parameters": {"x": "x" * SIZE}}).encode()), 400
    ),
}


@pytest.fixture
def serving(mirror, mirror_models):
    """A context in which a server runs on the test's loop; it gives a caller, and watches requests and outcomes."""

    @asynccontextmanager
    async def serving(watch, **options):
        loading = {"model-control-mode": "explicit", "load-model": ("*",)}
        limits = {"http-max-input-size": 3 * SIZE, "http-restricted-api": ("logging:key=secret",)}
        chosen = {"http-port": 0, "http-address": "127.0.0.1", **loading, **limits, **options}
        plugins = [mirror, naiad_http, naiad_shared_memory]
        server = Server(model_repository=[mirror_models], plugins=plugins, options=chosen)
        submit = watch.recording(server.submit)

        def submit_or_refuse(request, deliver, streams=False):
            if request.model_name == "full":
                watch.watch_request(request)
                raise QueueFullError("the queue is full")
            return submit(request, deliver, streams)

        server.submit = submit_or_refuse
        async with server:
            yield Caller(server.plugins.frontends()["http"].port, mirror.backend.gate)

    return serving


async def growth_of(outcome, caller):
    """The bytes that each of some runs of the outcome keeps; the first run fills caches."""
    before = 0
    for number in range(RUNS + 1):
        if number == 1:
            before = tracemalloc.get_traced_memory()[0]
        caller.gate.entered.clear()
        caller.gate.opened.clear()
        async with asyncio.timeout(15):
            await outcome(caller)
            await caller.settle()
    for _ in range(20):  # a thread of the model may let go of its last request a little later
        growth = (tracemalloc.get_traced_memory()[0] - before) // RUNS
        if growth < KEPT_AT_MOST:
            break
        await caller.settle()
    return growth


@contextmanager
def measured():
    """Memory is traced during the block, and everything that it watches must be dead at its end."""
    logging.disable()  # pytest keeps records, which keep tracebacks
    tracemalloc.start(1)
    try:
        with freed_by_reference_counts(seconds=10) as watch:
            yield watch
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)


def test_no_outcome_of_a_request_keeps_its_payload(run, serving):
    async def main(watch):
        async with serving(watch) as caller:
            return {name: await growth_of(OUTCOMES[name], caller) for name in OUTCOMES}

    with measured() as watch:
        growth = run(main(watch))

    assert {name: kept for name, kept in growth.items() if kept > KEPT_AT_MOST} == {}
    assert watch.watched > len(OUTCOMES)


class TlsCaller(Caller):
    """As a caller, over TLS, with a blocking socket on a thread: asyncio's own streams would keep payloads."""

    def __init__(self, port, gate, context):
        super().__init__(port, gate)
        self._context = context
        self.connections = 0

    @asynccontextmanager
    async def connected(self):
        """A connection over TLS, which is dropped at the end of the block."""
        self.connections += 1
        plain = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", self.port), 20)
        with await asyncio.to_thread(self._context.wrap_socket, plain, server_hostname="localhost") as secure:
            yield SimpleNamespace(
                send=lambda content: asyncio.to_thread(secure.sendall, content),
                receive=lambda: asyncio.to_thread(secure.recv, 65536),
            )


@pytest.mark.parametrize("outcome", ["answered, binary", "leaves within the body", "leaves within the answer"])
def test_no_outcome_over_tls_keeps_its_payload(run, serving, tmp_path, outcome):
    """The event loop's TLS keeps a buffer of 256 KiB for each connection until a collection, but no payload."""
    authority = Authority(tmp_path)
    cert, key = authority.issue("server")
    tls = {"http-use-ssl": True, "http-server-cert": str(cert), "http-server-key": str(key)}

    async def main(watch):
        async with serving(watch, **tls) as plain:
            caller = TlsCaller(plain.port, plain.gate, client_context(authority.root))
            await OUTCOMES[outcome](caller)
            await caller.settle()
            before, caller.connections = tracemalloc.get_traced_memory()[0], 0
            for _ in range(10):
                await OUTCOMES[outcome](caller)
            await caller.settle()
            return tracemalloc.get_traced_memory()[0] - before, caller.connections

    with measured() as watch:
        growth, connections = run(main(watch))

    assert growth < connections * TLS_BUFFER + 5 * SIZE


def protocols():
    """The connections of all servers in this process."""
    return [each for each in gc.get_objects() if type(each) is HttpProtocol]


def test_a_connection_dies_with_its_end(run, serving):
    """The whole connection, and not only its payload: no cycle holds it."""
    of_other_tests = protocols()  # the reference keeps them alive, so that their ids are not used again
    others = {id(each) for each in of_other_tests}

    async def main(watch):
        async with serving(watch) as caller:
            for outcome in ("answered, binary", "no such route", "leaves within the body", "generate_stream"):
                await OUTCOMES[outcome](caller)
                await caller.settle()
            return sum(id(each) not in others for each in protocols())

    with freed_by_reference_counts(seconds=10) as watch:
        alive = run(main(watch))

    assert alive <= 1  # of twelve: the last one may be about to be closed
