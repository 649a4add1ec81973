"""Clients that are connected and say nothing: what each costs, and what they cost the others."""

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence

from cases.case import Case
from report import Goal, Row
from rounds import MODELS, Run
from servers import Naiad, Peer, Running

_MANY = 2000
_MOST_BYTES = 25_000
_PAIRS = 4
"""Measurements by turns in each round, with the connections and without."""
Connect = Callable[[Running], socket.socket]
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = bytes(3) + b"\x04" + bytes(5)
_SETTINGS_ACK = bytes(3) + b"\x04\x01" + bytes(4)


def measure(run: Run) -> Sequence[Row]:
    servers: list[Naiad | Peer] = [Naiad()] if run.peer is None else [Naiad(), run.peer]
    seen: dict[str, dict[str, list[float]]] = {}
    for _ in range(run.rounds):
        for server in servers:
            for protocol, connect in _KINDS.items():
                numbers = seen.setdefault(server.name, {})
                with server.serve(MODELS) as running:
                    _memory(run, running, protocol, connect, numbers)
                    if server is servers[0]:
                        _throughput(run, running, protocol, connect, numbers)
    naiad, peer = seen["Naiad"], seen.get(run.peer.name, {}) if run.peer else {}
    rows = [
        Row(
            f"{protocol}: bytes for an idle connection",
            tuple(naiad[protocol]),
            tuple(peer.get(protocol, ())),
            Goal(most=_MOST_BYTES),
        )
        for protocol in _KINDS
    ]
    return rows + [
        Row(
            f"{protocol}: Naiad's throughput beside {_MANY:,} of them, to that without",
            tuple(naiad[f"{protocol} beside"]),
            (),
            Goal(least=0.95),
        )
        for protocol in _KINDS
    ]


def _memory(run: Run, running: Running, protocol: str, connect: Connect, seen: dict[str, list[float]]) -> None:
    """What the server's resident memory grows by for a connection, once it has worked."""
    _rate(run, running, protocol)
    before = running.resident_megabytes()
    with _connected(running, connect):
        seen.setdefault(protocol, []).append((running.resident_megabytes() - before) * 1e6 / _MANY)


def _throughput(run: Run, running: Running, protocol: str, connect: Connect, seen: dict[str, list[float]]) -> None:
    """Ratios of inferences/s beside the connections to those without, by turns."""
    for _ in range(1 if run.quick else _PAIRS):
        alone = _rate(run, running, protocol)
        with _connected(running, connect):
            seen.setdefault(f"{protocol} beside", []).append(_rate(run, running, protocol) / alone)


def _rate(run: Run, running: Running, protocol: str) -> float:
    port = running.ports.http if protocol == "HTTP" else running.ports.grpc
    return run.generator(port, "add_sub", 64, protocol=protocol.lower()).per_second


@contextlib.contextmanager
def _connected(running: Running, connect: Connect) -> Iterator[None]:
    with contextlib.ExitStack() as connections:
        for _ in range(_MANY):
            connections.enter_context(connect(running))
        yield


def _http(running: Running) -> socket.socket:
    """A connection that has asked once and waits."""
    connection = socket.create_connection(("127.0.0.1", running.ports.http))
    connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    connection.recv(4096)
    return connection


def _grpc(running: Running) -> socket.socket:
    """A connection whose HTTP/2 settings are exchanged (RFC 9113, section 3.4)."""
    connection = socket.create_connection(("127.0.0.1", running.ports.grpc))
    connection.sendall(_PREFACE + _SETTINGS)
    connection.recv(4096)
    connection.sendall(_SETTINGS_ACK)
    return connection


_KINDS: dict[str, Connect] = {"HTTP": _http, "gRPC": _grpc}

CASE = Case(
    "idle",
    f"{_MANY:,} idle connections",
    "Connections that were greeted and then say nothing, while perf_analyzer asks at concurrency 64 beside them.",
    measure,
)
