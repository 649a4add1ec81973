"""Bodies that lie about what is in them: how they are compressed, and the sizes of what they hold."""

import gzip
import json
import struct
import zlib

import pytest

from .asking import ECHO
from .running import Answer, Running, refusal

GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()
BINARY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]}


# Compressed bodies


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


def test_many_small_bombs_in_one_body_are_one_bomb(server: Running) -> None:
    bomb = gzip.compress(bytes(10_000_000)) * 20

    answer = server.ask("POST", ECHO, bomb, {"Content-Encoding": "gzip"})

    assert "exceeds the maximum allowed input size" in refusal(answer)


@pytest.mark.parametrize(
    "body",
    [GOOD, gzip.compress(GOOD)[:-4], gzip.compress(GOOD)[:20], gzip.compress(GOOD)[:-8] + bytes(8), b"\x1f\x8b", b""],
    ids=["plain", "cut at its end", "cut", "wrong checksum", "two bytes", "empty"],
)
def test_a_body_that_is_not_compressed_as_it_says_is_refused(server: Running, body: bytes) -> None:
    refusal(server.ask("POST", ECHO, body, {"Content-Encoding": "gzip"}))


# Sizes within the body


def binary(server: Running, document: object, content: bytes, stated: int | str | None = None) -> Answer:
    """A request with bytes behind its JSON, whose length the header states rightly or not."""
    text = json.dumps(document).encode()
    length = len(text) if stated is None else stated
    return server.ask("POST", ECHO, text + content, {"Inference-Header-Content-Length": str(length)})


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ("-1", "should be in range"),
        ("1000000", "should be in range"),
        ("99999999999999999999", "Unable to parse Inference-Header-Content-Length"),
        ("ten", "Unable to parse Inference-Header-Content-Length"),
        ("1e2", "Unable to parse Inference-Header-Content-Length"),
        ("10", "failed to parse the request JSON buffer"),
    ],
)
def test_the_length_of_the_json_must_be_true(server: Running, stated: str, told: str) -> None:
    assert told in refusal(binary(server, BINARY, bytes(8), stated))


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "expecting 8 additional bytes"),
        (7, "expecting 1 additional bytes"),
        (9, "unexpected additional input data"),
        (10_000, "unexpected additional input data"),
    ],
)
def test_the_bytes_of_the_tensors_must_be_as_many_as_they_say(server: Running, count: int, told: str) -> None:
    assert told in refusal(binary(server, BINARY, bytes(count)))


@pytest.mark.parametrize("size", [0, 4, 12, 2**40, 2**64, -1, 1.5, "8", None, True, [8]])
def test_the_size_of_a_tensor_must_be_that_of_its_shape(server: Running, size: object) -> None:
    document = json.loads(json.dumps(BINARY))
    document["inputs"][0]["parameters"]["binary_data_size"] = size

    told = refusal(binary(server, document, bytes(8)))

    assert "input byte size mismatch for input 'x'" in told or "binary_data_size" in told


@pytest.mark.parametrize(
    "shape",
    [
        [-1],
        [2**63],
        [2**64],
        [2**32, 2**32],
        [2**62, 4],
        [3],
        [2, 2],
        [],
        [1.5],
        ["2"],
        [True],
        [None],
        [[2]],
        2,
        {},
        None,
    ],
    ids=str,
)
def test_a_shape_that_does_not_fit_the_bytes_is_refused(server: Running, shape: object) -> None:
    document = json.loads(json.dumps(BINARY))
    document["inputs"][0]["shape"] = shape

    refusal(binary(server, document, bytes(8)))


STRINGS = {
    "length beyond the end": struct.pack("<I", 100) + b"abc",
    "largest length": struct.pack("<I", 2**32 - 1) + b"abc",
    "cut length": b"\3\0",
    "too few": struct.pack("<I", 3) + b"abc",
    "too many": (struct.pack("<I", 0)) * 3,
    "rest": struct.pack("<I", 1) + b"a" + struct.pack("<I", 1) + b"b" + b"c",
    "nothing": b"",
}


@pytest.mark.parametrize("content", STRINGS.values(), ids=STRINGS.keys())
def test_strings_that_lie_about_their_lengths_are_refused(server: Running, content: bytes) -> None:
    given = {"name": "IN_BYTES", "datatype": "BYTES", "shape": [1, 2]}
    text = json.dumps({"inputs": [given | {"parameters": {"binary_data_size": len(content)}}]}).encode()

    headers = {"Inference-Header-Content-Length": str(len(text))}
    answer = server.ask("POST", "/v2/models/custom_mirror/infer", text + content, headers)

    assert "IN_BYTES" in refusal(answer)
    assert "string" in answer.error
