"""Hostile requests that cost a whole server no memory: deep JSON, bombs, and bodies that never come."""

import zlib

import pytest

from .asking import ECHO
from .running import Running, post, refusal


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


def test_bodies_that_are_announced_and_never_come_take_no_memory(server: Running) -> None:
    before = server.resident_bytes

    with server.connections(100) as wires:
        for wire in wires:
            wire.send(post(ECHO, b"{", Content_Length=67108864))
        server.read_all()
        grown = server.resident_bytes - before

    assert grown < 50_000_000
