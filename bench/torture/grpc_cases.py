"""Hostile and unlucky gRPC clients: large messages that fail, compressed bombs, forged log lines, many connections."""

import contextlib
import re
import subprocess
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from pathlib import Path

import grpc

from bench.torture.case import Bounds, Case, Figure, count_of
from bench.torture.http2 import GOAWAY, Connection, call_fields, frame, message
from bench.torture.server import Setup, Target
from bench.torture.wire import connect
from naiad_grpc.messages import message_class

_SERVICE = "/inference.GRPCInferenceService/"
_INFER = _SERVICE + "ModelInfer"
_STREAM = _SERVICE + "ModelStreamInfer"
_PAYLOAD = bytes(10_000_000)
_CALLS = 150
_STREAMS = 200
_CHANNEL = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
_FAR = 20.0
_SHORT = 6.0


def infer_request(model: str, payload: bytes, name: str = "INPUT0", shape: int = 0) -> bytes:
    """A ModelInferRequest with one FP32 input, as bytes."""
    built = message_class("ModelInferRequest")(model_name=model)
    built.inputs.add(name=name, datatype="FP32", shape=[shape or len(payload) // 4])
    built.raw_input_contents.append(payload)
    return bytes(built.SerializeToString())


@contextlib.contextmanager
def channel_to(target: Target) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(f"127.0.0.1:{target.ports.grpc}", options=_CHANNEL) as channel:
        yield channel


def streams(target: Target) -> Sequence[Figure]:
    """200 streams, one after the other, each of one request of 10 MB and its answer."""
    request, failed = infer_request("identity", _PAYLOAD), 0
    with channel_to(target) as channel:
        call = channel.stream_stream(_STREAM)
        for _ in range(_STREAMS):
            try:
                failed += sum(len(answer) < len(_PAYLOAD) for answer in call(iter([request]), timeout=_FAR))
            except grpc.RpcError:
                failed += 1
                if not target.alive():
                    break
    return count_of("streams failed", failed)


def small_requests(target: Target) -> Sequence[Figure]:
    """Eight streams at once, each of 1,000 requests of 60 kB, to a model that answers five requests a second."""
    request = infer_request("slow", bytes(60_000))

    def client() -> None:
        with contextlib.suppress(grpc.RpcError):
            for _ in channel.stream_stream(_STREAM)(repeat(request, 1000), timeout=_SHORT):
                pass

    with channel_to(target) as channel:
        clients = [threading.Thread(target=client) for _ in range(8)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
    return ()


def failing(
    request: Callable[[], bytes],
    code: str = "INVALID_ARGUMENT",
    method: str = _INFER,
    timeout: float = _FAR,
    leave: bool = False,
) -> Callable[[Target], Sequence[Figure]]:
    """150 calls of 10 MB, one after the other, that are to end with this code; with `leave` the client cancels each."""

    def attack(target: Target) -> Sequence[Figure]:
        content, codes = request(), Counter[str]()
        with channel_to(target) as channel:
            call = channel.unary_unary(method)
            for _ in range(_CALLS):
                future = call.future(content, timeout=timeout)
                if leave:
                    time.sleep(0.03)
                    future.cancel()
                with contextlib.suppress(grpc.FutureCancelledError):
                    codes[future.code().name] += 1
                if not target.alive():
                    break
        return [Figure(f"other codes than {code}", codes.total() - codes[code], 0, str(dict(codes)))]

    return attack


def stream_errors(target: Target) -> Sequence[Figure]:
    """150 streams of 10 MB whose request fails within the stream."""
    request = infer_request("identity", _PAYLOAD, name="WRONG")
    with channel_to(target) as channel:
        call = channel.stream_stream(_STREAM)
        for _ in range(_CALLS):
            with contextlib.suppress(grpc.RpcError):
                for _answer in call(iter([request]), timeout=_FAR):
                    pass
            if not target.alive():
                break
    return []


@lru_cache
def bomb(megabytes: int) -> bytes:
    """A message of so many MB of zeros, compressed to a thousandth of it, with its prefix; its input does not exist."""
    request = infer_request("identity", b"", name="WRONG", shape=megabytes * 250_000)
    size = megabytes * 1_000_000
    length = b""
    while size >= 128:
        length, size = length + bytes((size % 128 + 128,)), size // 128
    compress = zlib.compressobj(9, zlib.DEFLATED, 31)
    top = request[: request.rindex(b"\x3a")] + b"\x3a" + length + bytes((size,))
    parts = [compress.compress(top)]
    parts += [compress.compress(bytes(1_000_000)) for _ in range(megabytes)]
    return message(b"".join([*parts, compress.flush()]), compressed=True)


def bombs(count: int, megabytes: int) -> Callable[[Target], Sequence[Figure]]:
    """So many clients at once, each with one compressed message of that size."""

    def attack(target: Target) -> Sequence[Figure]:
        content = bomb(megabytes)

        def client() -> None:
            with contextlib.suppress(OSError, EOFError), Connection(target.ports.grpc) as connection:
                connection.wait(connection.call(call_fields(_INFER, ("grpc-encoding", "gzip")), content))

        clients = [threading.Thread(target=client) for _ in range(count)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        return count_of("kB sent each", len(content) / 1e3, float("inf"))

    return attack


_FORGED = "E1122 10:00:00.000000 1 models.py:144] \"model 'add_sub' is UNAVAILABLE\""


def forged_log(target: Target) -> Sequence[Figure]:
    """1,000 connections that end with a GOAWAY of 16 kB of text: a line that looks like the server's own."""
    text = f"\n{_FORGED}\n\x1b[31m".encode() + b"x" * 16_000
    for _ in range(1000):
        with contextlib.suppress(OSError), connect(target.ports.grpc) as connection:
            connection.sendall(
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                + frame(4, 0, 0)
                + frame(GOAWAY, 0, 0, bytes((0, 0, 0, 0, 0, 0, 0, 2)) + text)
            )
            connection.recv(4096)
    time.sleep(0.5)
    lines = re.findall(rb"^E1122.*UNAVAILABLE", target.log.read_bytes(), re.MULTILINE)
    return count_of("forged lines", len(lines))


def many_channels(target: Target) -> Sequence[Figure]:
    """2,000 connections with a call each, that are all open at once, and one more client then."""
    request = message(infer_request("identity", bytes(4000)))
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Connection(target.ports.grpc)) for _ in range(2000)]
        calls = [(each, each.call(call_fields(_INFER), request)) for each in opened]
        failed = 0
        for each, stream in calls:
            try:
                each.wait(stream)
            except (OSError, EOFError):
                failed += 1
        with channel_to(target) as channel:
            started = time.monotonic()
            channel.unary_unary(_INFER)(infer_request("identity", bytes(4000)), timeout=_FAR)
            took = time.monotonic() - started
    return [Figure("calls failed", failed, 0), Figure("one more client s", took, 2)]


def rapid_resets(target: Target) -> Sequence[Figure]:
    """Calls that are reset as soon as they have begun, for 6 s."""
    until, count = time.monotonic() + 6, 0
    block, request = call_fields(_INFER), message(infer_request("identity", bytes(4000)))
    while time.monotonic() < until and target.alive():
        with contextlib.suppress(OSError, EOFError), Connection(target.ports.grpc) as connection:
            for stream in range(1, 2001, 2):
                connection.socket.sendall(
                    frame(1, 4, stream, block) + frame(0, 1, stream, request) + frame(3, 0, stream, bytes((0, 0, 0, 8)))
                )
                count += 1
    return count_of("calls reset", count, float("inf"))


def silent_tls(target: Target) -> Sequence[Figure]:
    """100 connections to a port with TLS that never say a word: how many are still there after 65 s."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connect(target.ports.grpc, 0.01)) for _ in range(100)]
        time.sleep(65)
        return count_of("silent ones after 65 s", sum(_is_open(each) for each in opened))


def _is_open(connection: object) -> bool:
    try:
        return bool(connection.recv(1))  # type: ignore[attr-defined]
    except TimeoutError:
        return True
    except OSError:
        return False


def _tls_options(repository: Path) -> Sequence[str]:
    """Options with a certificate of our own making."""
    key, certificate = repository.parent / "key.pem", repository.parent / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return ["--grpc-use-ssl=true", f"--grpc-server-cert={certificate}", f"--grpc-server-key={key}"]


_IDENTITY = Setup(models=("add_sub", "identity"))
_KINDS = {
    "unknown-model": failing(lambda: infer_request("missing", _PAYLOAD), "NOT_FOUND"),
    "wrong-name": failing(lambda: infer_request("identity", _PAYLOAD, name="WRONG")),
    "wrong-shape": failing(lambda: infer_request("identity", _PAYLOAD, shape=7)),
    "unimplemented": failing(lambda: infer_request("identity", _PAYLOAD), "UNIMPLEMENTED", _SERVICE + "NoSuchMethod"),
    "model-raises": failing(lambda: infer_request("raises", _PAYLOAD), "INTERNAL"),
    "deadline": failing(lambda: infer_request("slow", _PAYLOAD), "DEADLINE_EXCEEDED", timeout=0.06),
    "cancelled": failing(lambda: infer_request("slow", _PAYLOAD), "CANCELLED", leave=True),
}
_FAILING = Setup(models=("add_sub", "identity", "raises", "slow"))
_BUDGET = Setup(models=("add_sub", "slow"), options=("--max-bytes-in-flight=50000000",))

CASES = (
    Case("grpc-streams-of-10MB", streams, Bounds(kept=80, peak=200), _IDENTITY, seconds=110),
    Case("grpc-many-small-requests", small_requests, Bounds(kept=80, peak=150), _BUDGET),
    *(
        Case(f"grpc-failing-{kind}", attack, Bounds(kept=80, peak=250, log=400), _FAILING)
        for kind, attack in _KINDS.items()
    ),
    Case("grpc-stream-errors", stream_errors, Bounds(kept=80, peak=200), _IDENTITY),
    Case("grpc-bomb-of-1GB", bombs(1, 1000), Bounds(kept=80, peak=200), _IDENTITY),
    Case("grpc-three-bombs-of-900MB", bombs(3, 900), Bounds(kept=80, peak=400), _IDENTITY),
    Case("grpc-forged-log", forged_log, Bounds(log=20)),
    Case("grpc-2000-connections", many_channels, Bounds(kept=200, peak=400, wait=4), _IDENTITY),
    Case("grpc-rapid-resets", rapid_resets, Bounds(kept=120, peak=250), _IDENTITY),
    Case("grpc-silent-tls", silent_tls, Bounds(), Setup(prepare=_tls_options), seconds=90),
)
