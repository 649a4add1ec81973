"""Hostile requests that a whole server must survive: deep JSON, bombs, bodies that never come, clients that leave."""

import gzip
import json
import zlib

import pytest

from .asking import ECHO
from .running import Running, post, refusal

GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()


@pytest.mark.parametrize("body", [b"[" * 10_000 + b"]" * 10_000, b'{"parameters":' * 4_000 + b"1" + b"}" * 4_000])
@pytest.mark.parametrize("path", ["/v2/repository/index", "/v2/repository/models/echo/load"])
def test_deep_json_is_refused_by_the_other_routes_too(server: Running, path: str, body: bytes) -> None:
    refusal(server.ask("POST", path, body))


def test_a_deep_configuration_in_a_load_request_is_refused(server: Running) -> None:
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000

    answer = server.load("echo", config=deep)
    again = server.load("echo")

    assert "nested too deep" in refusal(answer)
    assert again.status == 200


def test_a_client_that_says_nothing_harms_nothing_else(server: Running) -> None:
    with server.connections(50) as wires:
        for wire in wires[:25]:
            wire.send(b"POST /v2")
        answer = server.infer("echo", 1)

    assert answer.status == 200


def test_a_client_that_leaves_in_the_middle_of_anything_harms_nothing_else(server: Running) -> None:
    request = post(ECHO, GOOD)

    for length in range(0, len(request), 5):
        with server.connected() as wire:
            wire.send(request[:length])

    assert server.infer("echo", 1).status == 200


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_is_refused_as_soon_as_it_passes_the_limit(server: Running, coding: str) -> None:
    stream = zlib.compressobj(1, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    megabyte = bytes(1_000_000)
    bomb = b"".join(stream.compress(megabyte) for _ in range(500)) + stream.flush()
    before = server.resident_bytes

    answer = server.ask("POST", ECHO, bomb, {"Content-Encoding": coding})

    assert len(bomb) < 5_000_000
    assert "exceeds the maximum allowed input size" in refusal(answer)
    assert server.resident_bytes - before < 200_000_000


@pytest.mark.parametrize(
    "body",
    [GOOD, gzip.compress(GOOD)[:-4], gzip.compress(GOOD)[:-8] + bytes(8), b"\x1f\x8b", b""],
    ids=["plain", "cut at its end", "wrong checksum", "two bytes", "empty"],
)
def test_a_body_that_is_not_compressed_as_it_says_is_refused(server: Running, body: bytes) -> None:
    refusal(server.ask("POST", ECHO, body, {"Content-Encoding": "gzip"}))


def test_bodies_that_are_announced_and_never_come_take_no_memory(server: Running) -> None:
    before = server.resident_bytes

    with server.connections(100) as wires:
        for wire in wires:
            wire.send(post(ECHO, b"{", Content_Length=67108864))
        server.read_all()
        grown = server.resident_bytes - before

    assert grown < 50_000_000
