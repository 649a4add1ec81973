"""Limits of connections, silence and bytes: the same tests over HTTP and over gRPC, against a whole server."""

import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2

import naiad_grpc
import naiad_http
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_testing import serve
from naiad_testing.backends import FakeBackend
from naiad_testing.clients import Client

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY_SETTINGS = bytes(3) + b"\x04" + bytes(5)
HEALTH = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
INFER = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
PATIENCE = 20.0
ELEMENTS = 150_000


@dataclass(frozen=True)
class Protocol:
    """A protocol: what its clients send first, and the options that limit them.

    `greeting` is answered on a connection within the limit; `further` is what a client over the limit sends;
    `beginning` is the incomplete first message of a slow client. `ask` sends a tensor of 600 KB, and returns its error.
    """

    name: str
    greeting: bytes
    further: bytes
    refusal: bytes
    beginning: bytes
    connections: str
    idle: dict[str, Any]
    slow: dict[str, Any]
    ask: Callable[[int], str]


def ask_http(port: int) -> str:
    tensor = np.zeros(ELEMENTS, np.float32).tobytes()
    head = b'{"inputs":[{"name":"INPUT","datatype":"FP32","shape":[%d],"parameters":{"binary_data_size":%d}}]}'
    text = head % (ELEMENTS, len(tensor))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", "/v2/models/m/infer", text + tensor, {"Inference-Header-Content-Length": str(len(text))})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return "" if response.status == 200 else f"{response.status} {body.decode()}"


def ask_grpc(port: int) -> str:
    request = service_pb2.ModelInferRequest(model_name="m")
    request.inputs.add(name="INPUT", datatype="FP32", shape=[ELEMENTS])
    request.raw_input_contents.append(np.zeros(ELEMENTS, np.float32).tobytes())
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(
                request.SerializeToString(), timeout=PATIENCE
            )
        except grpc.RpcError as error:
            return f"{error.code().name} {error.details()}"
    return ""


HTTP = Protocol(
    name="http",
    greeting=HEALTH,
    further=INFER,
    refusal=b"HTTP/1.1 503",
    beginning=INFER[:20],
    connections="http-max-connections",
    idle={"http-idle-seconds": 0.1},
    slow={"http-head-seconds": 0.1},
    ask=ask_http,
)
GRPC = Protocol(
    name="grpc",
    greeting=PREFACE + EMPTY_SETTINGS,
    further=PREFACE + EMPTY_SETTINGS,
    refusal=b"",
    beginning=PREFACE[:10],
    connections="grpc-max-connections",
    idle={"grpc-max-connection-idle": 100},
    slow={"grpc-handshake-timeout": 100},
    ask=ask_grpc,
)
both = pytest.mark.parametrize("protocol", [HTTP, GRPC], ids=["http", "grpc"])


@dataclass(frozen=True)
class Running:
    """A server with both frontends, and the port of one of them."""

    client: Client
    port: int

    def connect(self) -> socket.socket:
        """A connection that has sent nothing."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def reserved(self) -> int:
        """The bytes of requests and answers that are in flight."""

        async def bytes_in_flight(server: Any) -> int:
            return int(server.service(ByteBudget).reserved)

        return self.client.wait_for(bytes_in_flight)


@contextmanager
def running(tmp_path: Path, protocol: Protocol, options: dict[str, Any]) -> Iterator[Running]:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    local = {"http-port": 0, "grpc-port": 0, "http-address": "127.0.0.1", "grpc-address": "127.0.0.1"}
    with serve(tmp_path, plugins=[naiad_http, naiad_grpc, backend], options=local | options) as client:
        server: Any = client.server
        frontend = server.plugins.frontends()[protocol.name]
        yield Running(client, frontend.port if protocol is HTTP else int(frontend.target.rpartition(":")[2]))


def first_bytes(connection: socket.socket) -> bytes:
    """The first bytes that come, none at the end of the connection."""
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def everything(connection: socket.socket) -> bytes:
    """The bytes up to the end of the connection."""
    return b"".join(iter(lambda: first_bytes(connection), b""))


@both
def test_a_client_over_the_limit_of_connections_is_refused_and_the_others_are_served(
    tmp_path: Path, protocol: Protocol
) -> None:
    with running(tmp_path, protocol, {protocol.connections: 2}) as server, ExitStack() as stack:
        within = [stack.enter_context(server.connect()) for _ in range(2)]
        for each in within:
            each.sendall(protocol.greeting)
            assert each.recv(65536)
        above = stack.enter_context(server.connect())
        above.sendall(protocol.further)

        assert first_bytes(above)[: len(protocol.refusal) or None] == protocol.refusal
        within[0].settimeout(0)
        with pytest.raises(BlockingIOError):
            within[0].recv(1)


@both
def test_a_client_that_says_nothing_more_is_disconnected(tmp_path: Path, protocol: Protocol) -> None:
    with running(tmp_path, protocol, protocol.idle) as server, server.connect() as silent:
        silent.sendall(protocol.greeting)

        assert everything(silent)


@both
def test_a_client_that_does_not_complete_its_first_message_is_disconnected(tmp_path: Path, protocol: Protocol) -> None:
    with running(tmp_path, protocol, protocol.slow) as server, server.connect() as slow:
        slow.sendall(protocol.beginning)

        everything(slow)


@both
def test_a_request_above_the_budget_of_bytes_is_refused_and_gives_its_bytes_back(
    tmp_path: Path, protocol: Protocol
) -> None:
    with running(tmp_path, protocol, {"max-bytes-in-flight": 500_000}) as server:
        refused = protocol.ask(server.port)

        assert refused.startswith(("503", "UNAVAILABLE"))
        assert "--max-bytes-in-flight" in refused
        assert server.reserved() == 0


@both
def test_a_request_within_the_budget_of_bytes_is_answered_and_gives_its_bytes_back(
    tmp_path: Path, protocol: Protocol
) -> None:
    with running(tmp_path, protocol, {"max-bytes-in-flight": 5_000_000}) as server:
        assert protocol.ask(server.port) == ""
        assert server.reserved() == 0
