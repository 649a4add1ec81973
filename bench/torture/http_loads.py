"""Hostile HTTP bodies and answers: small or honest-looking requests that cost their decoder or encoder far more."""

import contextlib
import gzip
import json
import threading
import time
import zlib
from collections.abc import Callable, Sequence

from bench.torture.case import Bounds, Case, Figure
from bench.torture.server import Setup, Target
from bench.torture.wire import ask, binary_infer, connect, head, infer_path, json_infer, read_answer, request, tensor

_LONG = 55.0


def post(path: str, body: bytes, fields: dict[str, str] | None = None) -> Callable[[Target], Sequence[Figure]]:
    """An attack of one request; it takes whatever answer comes, but for one of 500."""

    def attack(target: Target) -> Sequence[Figure]:
        started = time.monotonic()
        status = ask(target.ports.http, "POST", path, body, fields or {}, timeout=_LONG).status
        note = f"{status} in {time.monotonic() - started:.1f} s"
        return [Figure("answered 500", 1 if status == 500 else 0, 0, note)]

    return attack


def deferred(build: Callable[[], tuple[str, bytes, dict[str, str]]]) -> Callable[[Target], Sequence[Figure]]:
    """As `post`, with a request that is built when the case runs."""
    return lambda target: post(*build())(target)


def nested(megabytes: int, model: str) -> Callable[[], tuple[str, bytes, dict[str, str]]]:
    """One number 90 lists deep and, beside it, as many ones as fill the body."""
    deep = "[" * 90 + "1" + "]" * 90

    def build() -> tuple[str, bytes, dict[str, str]]:
        count = megabytes * 500_000
        content = f"[{deep}{',1' * count}]"
        start = f'{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[{count + 1}],"data":'
        return infer_path(model), f"{start}{content}}}]}}".encode(), {}

    return build


def numbers_in_json() -> tuple[str, bytes, dict[str, str]]:
    """20 MB of numbers for a model that takes them."""
    count = 3_000_000
    start = (
        f'{{"parameters":{{"binary_data_output":true}},"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[{count}]'
    )
    return infer_path("identity"), f'{start},"data":[{",".join(["12.345"] * count)}]}}]}}'.encode(), {}


def empty_strings(model: str, megabytes: int) -> Callable[[], tuple[str, bytes, dict[str, str]]]:
    """Binary BYTES of nothing but empty elements: four bytes each."""

    def build() -> tuple[str, bytes, dict[str, str]]:
        count = megabytes * 250_000
        body, fields = binary_infer("text", "BYTES", [count], bytes(4 * count))
        return infer_path(model), body, fields

    return build


def generate_keys() -> tuple[str, bytes, dict[str, str]]:
    """A generate request of four million parameters, 45 MB."""
    members = ",".join(f'"k{number}":1' for number in range(4_000_000))
    return "/v2/models/events/generate", f'{{"COUNT":1,"SIZE":1,{members}}}'.encode(), {}


def classes() -> tuple[str, bytes, dict[str, str]]:
    """The classes of a million scores, all of them."""
    body = {
        "inputs": [tensor("seed", "INT64", [1], [1])],
        "outputs": [{"name": "scores", "parameters": {"classification": 1_000_000}}],
    }
    return infer_path("scores"), json.dumps(body).encode(), {}


def ones(count: int) -> bytes:
    return json_infer(tensor("count", "INT64", [1], [count]))


def members(content: bytes, size: int) -> bytes:
    """As many copies of a compressed member as fill that many bytes."""
    return content * (size // len(content))


_EMPTY_ZLIB = zlib.compress(b"")
_EMPTY_GZIP = gzip.compress(b"", mtime=0)


def many_members(coding: str, member: bytes) -> Callable[[Target], Sequence[Figure]]:
    """Seven clients send 4 MiB of empty members each; then a model is loaded, and a compressed request sent."""

    def attack(target: Target) -> Sequence[Figure]:
        body = members(member, 4 << 20)
        load = "/v2/repository/models/identity/load"
        with contextlib.ExitStack() as stack:
            for _ in range(7):
                connection = stack.enter_context(connect(target.ports.http))
                with contextlib.suppress(OSError):
                    connection.sendall(request("POST", infer_path("add_sub"), body, {"Content-Encoding": coding}))
            time.sleep(0.5)
            return [
                _seconds("load s", 3, lambda: ask(target.ports.http, "POST", load, b"{}")),
                _seconds("compressed s", 3, lambda: _compressed(target)),
                _seconds("metrics s", 3, lambda: ask(target.ports.metrics, "GET", "/metrics")),
            ]

    return attack


def gzip_bombs(target: Target) -> Sequence[Figure]:
    """Twenty bodies at once of 1 MB that would become 1 GB."""
    body = gzip.compress(bytes(100_000_000), 9, mtime=0) * 10
    fields = {"Content-Encoding": "gzip"}
    clients = [
        threading.Thread(target=lambda: _quietly(target, request("POST", infer_path("add_sub"), body, fields)))
        for _ in range(20)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return []


def wide_tensor_lies(target: Target) -> Sequence[Figure]:
    """Heads and shapes that promise what does not come: each must be refused at once and cost nothing."""
    lies = [
        json_infer(tensor("INPUT0", "FP32", [1 << 40], [1])),
        json_infer(tensor("INPUT0", "FP32", [-1], [1])),
        json_infer(tensor("INPUT0", "FP32", [1 << 31, 1 << 31, 4], [])),
        b'{"inputs":' + b"[" * 100_000,
        b'{"a":' * 100_000,
    ]
    good = sum(ask(target.ports.http, "POST", infer_path("identity"), body).status != 400 for body in lies)
    return [Figure("answers other than 400", good, 0)]


def _compressed(target: Target) -> None:
    inputs = [tensor(name, "FP32", [1, 16], [1] * 16) for name in ("INPUT0", "INPUT1")]
    body = gzip.compress(json_infer(*inputs, padding="x" * 200_000))
    answer = ask(target.ports.http, "POST", infer_path("add_sub"), body, {"Content-Encoding": "gzip"})
    if answer.status >= 500:
        raise OSError(f"status {answer.status}")


def _seconds(name: str, most: float, act: Callable[[], object]) -> Figure:
    """How long it took; what fails counts as 99 s."""
    started = time.monotonic()
    try:
        act()
    except (OSError, EOFError) as error:
        return Figure(name, 99, most, str(error))
    return Figure(name, time.monotonic() - started, most)


def _quietly(target: Target, content: bytes) -> None:
    with contextlib.suppress(OSError, EOFError), connect(target.ports.http) as connection:
        connection.sendall(content)
        read_answer(connection)


def leave_huge_answer(target: Target) -> Sequence[Figure]:
    """Ten clients ask for 200 MB as bytes, read a little and leave."""
    body = json_infer(tensor("count", "INT64", [1], [50_000_000]), parameters={"binary_data_output": True})
    for _ in range(10):
        with contextlib.suppress(OSError), connect(target.ports.http) as connection:
            connection.sendall(head("POST", infer_path("numbers"), {"Content-Length": str(len(body))}) + body)
            connection.recv(1000)
    return []


_EXPLICIT = Setup(models=("add_sub", "identity"), options=("--model-control-mode=explicit", "--load-model=add_sub"))
_JSON = Bounds(kept=60, peak=500)

CASES = (
    Case("json-nested-1MB", deferred(nested(1, "identity")), _JSON, Setup(models=("add_sub", "identity"))),
    Case("json-nested-4MB", deferred(nested(4, "identity")), _JSON, Setup(models=("add_sub", "identity"))),
    Case(
        "json-nested-16MB", deferred(nested(16, "identity")), Bounds(100, 1000), Setup(models=("add_sub", "identity"))
    ),
    Case("json-nested-4MB-unknown-model", deferred(nested(4, "missing")), Bounds(peak=60)),
    Case("json-20MB-of-numbers", deferred(numbers_in_json), Bounds(100, 600), Setup(models=("add_sub", "identity"))),
    Case("json-lying-shapes", wide_tensor_lies, Bounds(), Setup(models=("add_sub", "identity"))),
    Case(
        "bytes-61MB-of-empty", deferred(empty_strings("strings", 61)), Bounds(100, 1500), Setup(("add_sub", "strings"))
    ),
    Case("bytes-8MB-of-unknown-model", deferred(empty_strings("missing", 8)), Bounds(peak=60)),
    Case("generate-4M-keys", deferred(generate_keys), Bounds(100, 1200), Setup(models=("add_sub", "events"))),
    Case("classification-of-1M", deferred(classes), Bounds(100, 600), Setup(models=("add_sub", "scores"))),
    Case(
        "json-answer-50M",
        post(infer_path("numbers"), ones(50_000_000)),
        Bounds(100, 900),
        Setup(("add_sub", "numbers")),
    ),
    Case(
        "json-answer-300M",
        post(infer_path("numbers"), ones(300_000_000)),
        Bounds(100, 2500),
        Setup(("add_sub", "numbers")),
    ),
    Case("binary-answer-left", leave_huge_answer, Bounds(100, 700), Setup(models=("add_sub", "numbers"))),
    Case("zlib-members-4MB-x7", many_members("deflate", _EMPTY_ZLIB), Bounds(), _EXPLICIT),
    Case("gzip-members-4MB-x7", many_members("gzip", _EMPTY_GZIP), Bounds(), _EXPLICIT),
    Case("gzip-bombs-x20", gzip_bombs, Bounds(100, 800)),
)
