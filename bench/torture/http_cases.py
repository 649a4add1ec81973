"""Hostile HTTP connections: clients that leave, pipeline, send slowly, ask for what they may not, or are too many."""

import contextlib
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from bench.torture.case import Bounds, Case, Figure, count_of
from bench.torture.server import Setup, Target
from bench.torture.wire import ask, connect, head, infer_path, json_infer, read_answer, request, tensor

_MIB = 1 << 20
_RESTRICTED = ("--http-restricted-api=model-repository:admin-key=secret",)
_LEAVERS = 80
_BODY = bytes(30_000_000)


def leave_in_body(target: Target) -> Sequence[Figure]:
    """80 clients, one at a time: a head that announces 30 MB, all of it but a byte, and the end of the connection."""
    top = head("POST", infer_path("add_sub"), {"Content-Length": str(len(_BODY) + 1)})
    return _leave(target, top, _BODY)


def leave_in_chunks(target: Target) -> Sequence[Figure]:
    """The same with chunks of a million bytes, of which the last never comes."""
    chunk = b"%x\r\n%s\r\n" % (1_000_000, bytes(1_000_000))
    return _leave(target, head("POST", infer_path("add_sub"), {"Transfer-Encoding": "chunked"}), chunk * 30)


def _leave(target: Target, top: bytes, body: bytes) -> list[Figure]:
    for _ in range(_LEAVERS):
        with connect(target.ports.http) as connection, contextlib.suppress(OSError):
            connection.sendall(top)
            connection.sendall(body)
    return []


def pipeline(target: Target) -> Sequence[Figure]:
    """200 connections that send health requests for 12 s as fast as they are taken, and read the answers."""
    sent = flood(target.ports.http, 200, request("GET", "/v2/health/live") * 500, 12)
    return count_of("MB sent", sent / 1e6, float("inf"))


def empty_lines(target: Target) -> Sequence[Figure]:
    """10 connections that send nothing but CRLF for 6 s."""
    sent = flood(target.ports.http, 10, b"\r\n" * 32768, 6)
    return count_of("MB sent", sent / 1e6, float("inf"))


def flood(port: int, connections: int, content: bytes, seconds: float) -> int:
    """Send the content again and again on so many connections, reading what comes; returns how many bytes went out.

    A connection that the server closes is replaced.
    """
    sent, until = 0, time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for _ in range(connections):
            _watch(selector, port)
        while time.monotonic() < until and selector.get_map():
            for key, events in selector.select(0.1):
                try:
                    sent += _pump(key.fileobj, events, content, key.data)
                except OSError:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
                    with contextlib.suppress(OSError):
                        _watch(selector, port)
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
    return sent


def _watch(selector: selectors.BaseSelector, port: int) -> None:
    connection = connect(port, 5)
    connection.setblocking(False)
    selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [0])


def _pump(connection: object, events: int, content: bytes, offset: list[int]) -> int:
    """Read and send once; the content goes on where it stopped."""
    assert isinstance(connection, socket.socket)
    if events & selectors.EVENT_READ and not connection.recv(1 << 18):
        raise ConnectionError("closed")
    if not events & selectors.EVENT_WRITE:
        return 0
    with contextlib.suppress(BlockingIOError):
        count = connection.send(content[offset[0] : offset[0] + _MIB])
        offset[0] = (offset[0] + count) % len(content)
        return count
    return 0


def refused_bodies(target: Target) -> Sequence[Figure]:
    """30 clients without the key at once, each with 59 MiB for a restricted API."""
    content = bytes(59 * _MIB)
    top = head("POST", "/v2/repository/index", {"Content-Length": str(len(content))})
    statuses: Counter[int] = Counter()

    def client() -> None:
        with contextlib.suppress(OSError, EOFError), connect(target.ports.http) as connection:
            connection.sendall(top)
            time.sleep(0.3)  # what a head decides can be answered now
            with contextlib.suppress(OSError):
                connection.sendall(content)
            statuses[read_answer(connection).status] += 1

    _together([client] * 30)
    others = count_of("answers other than 403", sum(statuses.values()) - statuses[403])
    return [*others, *count_of("clients without any answer", int(not statuses[403]))]


def refused_heads(target: Target) -> Sequence[Figure]:
    """Heads that can be refused at once and ask for `100 Continue` first: none may get it."""
    wait = {"Expect": "100-continue", "Content-Length": "10000000"}
    heads = [
        head("POST", "/v2/repository/index", wait),
        head("POST", "/v2/no/such/path", wait),
        head("PUT", "/v2/models/add_sub/infer", wait),
        head("POST", "/v2/models/add_sub/infer", {**wait, "Content-Length": "10000000000"}),
        head("POST", "/v2/models/add_sub/infer", {**wait, "Inference-Header-Content-Length": "minus one"}),
    ]
    invited = []
    for each in heads:
        with connect(target.ports.http, 5) as connection:
            connection.sendall(each)
            status = read_answer(connection).status
        if status < 400:
            invited.append(f"{each.split(b' HTTP')[0].decode()}: {status}")
    return [Figure("heads not refused", len(invited), 0, "; ".join(invited))]


def idle_and_slow(target: Target) -> Sequence[Figure]:
    """1,000 idle clients and 100 that send a byte a second, with 300 descriptors: health, metrics, gRPC must answer."""
    clients = []
    for _ in range(1100):
        with contextlib.suppress(OSError):
            clients.append(connect(target.ports.http, 2))
    until, shut_out, number = time.monotonic() + 10, Counter[str](), 0
    while time.monotonic() < until:
        for client in clients[:100]:
            with contextlib.suppress(OSError):
                client.sendall(b"GET /v2/health/live HTTP/1.1\r\n"[number : number + 1])
        number += 1
        for name, probe in _open_doors(target).items():
            try:
                probe()
            except (OSError, EOFError) as error:
                shut_out[f"{name}: {error}"] += 1
        time.sleep(1)
    for client in clients:
        client.close()
    return [Figure("probes shut out", sum(shut_out.values()), 0, str(dict(shut_out) or ""))]


def _open_doors(target: Target) -> dict[str, Callable[[], None]]:
    def answered(port: int, path: str) -> Callable[[], None]:
        def probe() -> None:
            answer = ask(port, "GET", path, timeout=3)
            if answer.status != 200:
                raise OSError(f"status {answer.status}")

        return probe

    def greeted() -> None:
        with connect(target.ports.grpc, 3) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
            if not connection.recv(9):
                raise OSError("closed without a frame")

    ports = target.ports
    return {
        "health": answered(ports.http, "/v2/health/live"),
        "metrics": answered(ports.metrics, "/metrics"),
        "gRPC": greeted,
    }


def busy_and_wrong(target: Target) -> Sequence[Figure]:
    """2,000 connections for 10 s, each with the next request when it was refused: its tensor has the wrong shape."""
    body = json_infer(tensor("INPUT0", "FP32", [1, 3], [1, 2, 3]))
    statuses = closed_loop(target.ports.http, 2000, request("POST", infer_path("add_sub"), body), 10)
    other = sum(statuses.values()) - statuses[400]
    return [Figure("answers other than 400", other, 0), Figure("refused", statuses[400], float("inf"))]


def busy_and_full(target: Target) -> Sequence[Figure]:
    """2,000 clients of a model of 2 ms a request whose queue takes 100: those refused try again at once."""
    body = json_infer(tensor("INPUT0", "FP32", [1, 1], [1]))
    statuses = closed_loop(target.ports.http, 2000, request("POST", infer_path("queued"), body), 10)
    good = statuses[200] / 10
    return [Figure("ms a good answer", 1000 / good if good else float("inf"), 50, f"{dict(statuses)}")]


def closed_loop(port: int, connections: int, content: bytes, seconds: float) -> Counter[int]:
    """Clients that send the request, read the answer and send it again; the statuses that they saw."""
    statuses: Counter[int] = Counter()
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for _ in range(connections):
            connection = stack.enter_context(connect(port))
            connection.sendall(content)
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for key, _ in selector.select(0.1):
                for status in _answers(key.fileobj):
                    statuses[status] += 1
                    if not status:
                        selector.unregister(key.fileobj)
                    else:
                        key.fileobj.send(content)  # type: ignore[union-attr]
    return statuses


def _answers(connection: object) -> Iterator[int]:
    """The status of the answer that has come (they are small and come whole); 0 where the connection has ended."""
    assert isinstance(connection, socket.socket)
    try:
        received = connection.recv(65536)
    except BlockingIOError:
        return
    except OSError:
        received = b""
    yield int(received[9:12]) if received.startswith(b"HTTP/1.1 ") else 0


def _together(clients: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=client) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


CASES = (
    Case("http-leave-in-body", leave_in_body),
    Case("http-leave-in-chunks", leave_in_chunks),
    Case("http-pipelining", pipeline, Bounds(wait=4)),
    Case("http-empty-lines", empty_lines),
    Case("http-refused-bodies", refused_bodies, Bounds(peak=100), Setup(options=_RESTRICTED)),
    Case("http-refused-heads", refused_heads, Bounds(peak=30), Setup(options=_RESTRICTED)),
    Case("http-idle-and-slow", idle_and_slow, Bounds(), Setup(open_files=300)),
    Case("http-busy-and-wrong", busy_and_wrong, Bounds(wait=4)),
    Case("http-busy-and-full", busy_and_full, Bounds(wait=4, log=500), Setup(models=("add_sub", "queued"))),
)
