"""Fuzzer of the HTTP frontend: 20,000 seeded requests, broken in every way; none may be answered by a 500 or hang."""

import contextlib
import gzip
import json
import socket
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from bench.torture.case import Bounds, Case, Figure
from bench.torture.fuzzer import CASES_OF_FUZZER, LOG_KB, SECONDS, Findings, run_clients
from bench.torture.mutations import ODD_NUMBERS, ODD_TEXTS, mutate_bytes, mutate_json
from bench.torture.server import Setup, Target
from bench.torture.wire import binary_infer, connect, head, infer_path, request, tensor

_CLIENTS = 16
_INCOMPLETE_AFTER = 0.2
_HANGS_AFTER = 10.0
_BODIES: dict[str, Any] = {
    infer_path("identity"): {
        "id": "1",
        "inputs": [tensor("INPUT0", "FP32", [3], [1, 2, 3])],
        "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
        "parameters": {"priority": 1, "timeout": 1000, "sequence_id": 3},
    },
    infer_path("strings"): {"inputs": [tensor("text", "BYTES", [2], ["a", "b"])]},
    "/v2/models/events/generate": {"COUNT": 1, "SIZE": 3, "parameters": {"temperature": 0.5}},
    "/v2/models/events/generate_stream": {"COUNT": 3, "SIZE": 3, "id": "7"},
    "/v2/repository/index": {"ready": True},
    "/v2/repository/models/missing/load": {"parameters": {"config": "{}", "file:1/model.py": "cGFzcw=="}},
    "/v2/repository/models/missing/unload": {"parameters": {"unload_dependents": True}},
    "/v2/systemsharedmemory/region/r/register": {"key": "/missing", "offset": 0, "byte_size": 64},
    "/v2/systemsharedmemory/region/r/unregister": {},
    "/v2/cudasharedmemory/region/r/register": {"raw_handle": {"b64": "AAAA"}, "device_id": 0, "byte_size": 64},
    "/v2/models/identity/trace/setting": {"trace_rate": "1000", "trace_count": "1"},
    "/v2/logging": {"log_verbose_level": 0, "log_info": True},
}
_SEGMENTS = (
    "v2",
    "models",
    "identity",
    "versions",
    "1",
    "infer",
    "health",
    "ready",
    "stats",
    "config",
    "repository",
    "",
)
_ESCAPES = ("%2e%2e", "..", ".", "%00", "%", "%zz", "a" * 5000, "\\", ";x", "?q=1", "#", "//", "%2Finfer")


def fuzz(target: Target) -> Sequence[Figure]:
    """All cases, by 16 clients at once; each client has random numbers of its own."""
    before = target.descriptors()
    return run_clients(_CLIENTS, partial(_client, target)).figures(target, "500, or no end", before)


def _client(target: Target, random: Random, until: float, findings: Findings) -> None:
    kinds = (_raw, _flipped, _json, _json, _binary, _fields, _chunked, _compressed, _path)
    for _ in range(CASES_OF_FUZZER // _CLIENTS):
        if time.monotonic() > until or not target.alive():
            return
        content = random.choice(kinds)(random)
        try:
            answer = exchange(target.ports.http, content)
        except TimeoutError:
            answer = "no end"
        except OSError:
            answer = "reset"
        findings.seen[answer] += 1
        if answer in ("500", "no end"):
            findings.wrong.append(f"{answer} for {content[:300]!r}")


def exchange(port: int, content: bytes) -> str:
    """The status of the first answer to these bytes, or "none" where the connection ends without one.

    Bytes that are no whole request get their end when nothing has come for a while. Raises TimeoutError where even
    then the connection stays.
    """
    with connect(port, _INCOMPLETE_AFTER) as connection:
        received = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            connection.sendall(content)
        with contextlib.suppress(TimeoutError):
            received = connection.recv(65536)
        if not received:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(_HANGS_AFTER)
            received = connection.recv(65536)
        return received[9:12].decode("latin-1") if received.startswith(b"HTTP/1.") else "none"


def _template(random: Random) -> tuple[str, Any]:
    return random.choice(list(_BODIES.items()))


def _raw(random: Random) -> bytes:
    start = random.choice((b"", b"GET ", b"POST /v2 HTTP/1.1\r\n", b"\r\n", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\n"))
    return start + random.randbytes(random.randrange(1, 2000)) + random.choice((b"", b"\r\n\r\n"))


def _flipped(random: Random) -> bytes:
    path, body = _template(random)
    return mutate_bytes(random, request("POST", path, json.dumps(body).encode()))


def _json(random: Random) -> bytes:
    path, body = _template(random)
    text = json.dumps(mutate_json(random, body)).encode()
    return request("POST", path, text if random.random() < 0.9 else mutate_bytes(random, text))


def _binary(random: Random) -> bytes:
    """A binary tensor whose sizes and bytes contradict each other."""
    name, datatype, model = random.choice((("INPUT0", "FP32", "identity"), ("text", "BYTES", "strings")))
    payload = random.randbytes(random.choice((0, 3, 4, 12, 400)))
    if random.random() < 0.3:
        payload = b"\x02\x00\x00\x00ab" * 3
    body, fields = binary_infer(name, datatype, [random.choice((0, 1, 3, 100, *ODD_NUMBERS))], payload)
    if random.random() < 0.4:
        length = random.choice((0, 1, -1, len(body), len(body) + 1, 10**20, "x", "", "1.0"))
        fields["Inference-Header-Content-Length"] = str(length)
    return request("POST", infer_path(model), body if random.random() < 0.6 else mutate_bytes(random, body), fields)


def _fields(random: Random) -> bytes:
    """A good body under odd fields."""
    path, body = _template(random)
    content = json.dumps(body).encode()
    odd = {
        "Content-Length": random.choice((str(len(content)), "-1", "+5", "1e3", "0x10", str(10**30), "5, 5", "")),
        "Transfer-Encoding": random.choice(("chunked", "identity", "gzip, chunked", "chunked, chunked", "x")),
        "Content-Encoding": random.choice(("gzip", "deflate", "br", "gzip, gzip", "")),
        "Expect": random.choice(("100-continue", "200-ok", "")),
        "Connection": random.choice(("close", "keep-alive", "upgrade", "close, keep-alive", "")),
        "Upgrade": "h2c",
        "Request-Timeout": random.choice(("0", "-1", "nan", "inf", "1e400", "x", "0.001")),
        "Accept-Encoding": random.choice(("gzip", "deflate;q=0", "*;q=x", "gzip;q=9", "," * 500)),
        "Host": random.choice(("", "a b", "x" * 300)),
        "x" * random.choice((1, 100, 9000)): random.choice(ODD_TEXTS).replace("é", "e"),
    }
    chosen = random.sample(list(odd.items()), random.randint(1, 4))
    return head("POST", path, dict([("Content-Length", str(len(content))), *chosen])) + content


def _chunked(random: Random) -> bytes:
    path, body = _template(random)
    content = json.dumps(body).encode()
    parts = []
    while content:
        size = random.randint(1, 60)
        extension = random.choice((b"", b"", b";a=b", b";" + b"x" * 300))
        parts.append(b"%x%s\r\n%s\r\n" % (min(size, len(content)), extension, content[:size]))
        content = content[size:]
    parts.append(
        random.choice(
            (b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n", b"", b"-1\r\n", b"fffffffffffffffff\r\n")
        )
    )
    whole = b"".join(parts)
    whole = whole if random.random() < 0.5 else mutate_bytes(random, whole)
    return head("POST", path, {"Transfer-Encoding": "chunked"}) + whole


def _compressed(random: Random) -> bytes:
    path, body = _template(random)
    content = json.dumps(body).encode()
    compress: Callable[[bytes], bytes] = random.choice((gzip.compress, zlib.compress))
    packed = b"".join(compress(part) for part in (content[:20], content[20:])) * random.choice((1, 1, 2))
    packed = packed if random.random() < 0.4 else mutate_bytes(random, packed)
    return request("POST", path, packed, {"Content-Encoding": random.choice(("gzip", "deflate", "gzip, deflate"))})


def _path(random: Random) -> bytes:
    segments = [random.choice((*_SEGMENTS, *_ESCAPES)) for _ in range(random.randint(1, 8))]
    method = random.choice(("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "get", "CONNECT", "M" * 50))
    return request(method, "/" + "/".join(segments), random.choice((b"", b"{}", b"[]")))


_SETUP = Setup(
    models=("add_sub", "identity", "strings", "events"),
    options=(
        "--model-control-mode=explicit",
        *(f"--load-model={name}" for name in ("add_sub", "identity", "strings", "events")),
        "--allow-client-shm=true",
    ),
)

CASES = (Case("fuzz-http", fuzz, Bounds(kept=60, peak=120, wait=3, log=LOG_KB), _SETUP, seconds=SECONDS + 35),)
