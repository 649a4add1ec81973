"""Bodies that lie: about their length, their size when unfolded, the sizes within them, and what they are."""

import gzip
import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Start
from .running import Answer, Running, Wire, post

INFER = "/v2/models/echo/infer"
GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()
BINARY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]}


@pytest.fixture
def wire(server: Running) -> Iterator[Wire]:
    with server.connected() as opened:
        yield opened


def refusal(answer: Answer | None, status: int = 400) -> str:
    """What an answer that must be a refusal says."""
    assert answer is not None
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json"), answer.body
    assert "Traceback" not in answer.error
    return answer.error


def served(answer: Answer | None) -> bool:
    return answer is not None and answer.status == 200


# The length of the body


@pytest.mark.parametrize("stated", [len(GOOD) + 1, 10_000, 60_000_000])
def test_a_body_shorter_than_its_length_is_waited_for_and_refused_at_its_end(wire: Wire, stated: int) -> None:
    wire.send(post(INFER, GOOD, Content_Length=stated))
    wire.say_no_more()

    told = refusal(wire.answer())

    assert f"the body ends after {len(GOOD)} of the {stated} bytes" in told
    assert wire.answer() is None


@pytest.mark.parametrize("stated", [0, 1, len(GOOD) - 1])
def test_a_body_longer_than_its_length_is_read_as_far_as_it_says_and_the_rest_is_no_request(
    wire: Wire, stated: int
) -> None:
    wire.send(post(INFER, GOOD + b"\r\n\r\n", Content_Length=stated))

    assert "failed to parse the request JSON buffer" in refusal(wire.answer())
    assert "no HTTP request" in refusal(wire.answer())
    assert wire.answer() is None


def test_a_body_without_a_length_counts_as_none(wire: Wire) -> None:
    wire.send(f"POST {INFER} HTTP/1.1\r\nHost: h\r\n\r\n".encode() + GOOD + b"\r\n\r\n")

    refusal(wire.answer())
    refusal(wire.answer())
    assert wire.answer() is None


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: -1",
        "Content-Length: +5",
        "Content-Length: 5, 5",
        "Content-Length: 0x5",
        "Content-Length: five",
        "Content-Length: 99999999999999999999999999",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: nonsense",
    ],
)
def test_a_length_that_makes_no_sense_ends_the_connection(wire: Wire, lines: str) -> None:
    wire.send(f"POST {INFER} HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\nabcde".encode())

    answer = wire.answer()

    assert answer is not None
    assert (answer.status in (400, 501), answer.headers["connection"]) == (True, "close")
    assert answer.error
    assert wire.answer() is None


def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(wire: Wire) -> None:
    wire.send(post(INFER, b"", Content_Length=67108865))

    assert "67108865 bytes exceeds the maximum allowed input size of 67108864 bytes" in refusal(wire.answer())


def test_bodies_that_are_announced_and_never_come_take_no_memory(server: Running) -> None:
    before = resident_bytes(server)

    with server.connections(100) as wires:
        for wire in wires:
            wire.send(post(INFER, b"{", Content_Length=67108864))
        server.read_all()
        grown = resident_bytes(server) - before

    assert grown < 50_000_000


def resident_bytes(server: Running) -> int:
    """How much memory the server's process has."""
    pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


# Chunks


def chunked(*pieces: bytes) -> bytes:
    head = f"POST {INFER} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head.encode() + b"".join(pieces)


def chunk(content: bytes, stated: int | None = None) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content) if stated is None else stated, content)


def test_chunks_of_any_size_with_extensions_and_trailers_are_put_together(wire: Wire) -> None:
    pieces = [chunk(GOOD[start : start + 7]) for start in range(0, len(GOOD), 7)]
    pieces[0] = pieces[0].replace(b"\r\n", b';name="value"\r\n', 1)

    wire.send(chunked(*pieces, b"0\r\nX-Trailer: yes\r\n\r\n") + post(INFER, GOOD))

    assert [served(wire.answer()), served(wire.answer())] == [True, True]


@pytest.mark.parametrize(
    "pieces",
    [
        (chunk(GOOD, len(GOOD) - 1), b"0\r\n\r\n"),
        (chunk(GOOD, len(GOOD) + 1), b"0\r\n\r\n"),
        (b"-5\r\nabcde\r\n0\r\n\r\n",),
        (b"zz\r\n",),
        (b"\r\n\r\n",),
        (b"5 5\r\nabcde\r\n0\r\n\r\n",),
        (b"5\nabcde\n0\n\n",),
        (b"fffffffffffffffff\r\n",),
        (b"5;" + b"x" * 100_000 + b"\r\n",),
    ],
    ids=["long", "short", "negative", "letters", "empty", "spaces", "bare newlines", "overflow", "endless extension"],
)
def test_chunks_that_lie_about_their_length_end_the_connection(wire: Wire, pieces: tuple[bytes, ...]) -> None:
    wire.send(chunked(*pieces))

    assert "malformed chunked body" in refusal(wire.answer())
    assert wire.answer() is None


def test_a_chunk_larger_than_the_limit_is_refused_at_its_first_line(wire: Wire) -> None:
    wire.send(chunked(b"7fffffff\r\n"))

    assert "exceeds the maximum allowed input size" in refusal(wire.answer())


def test_more_chunks_than_anybody_needs_are_refused(wire: Wire) -> None:
    wire.send(chunked(chunk(b"x") * 65_537))

    assert "more than 65536 chunks" in refusal(wire.answer())


def test_chunks_without_an_end_are_refused_when_the_client_has_said_all(wire: Wire) -> None:
    wire.send(chunked(chunk(GOOD)))
    wire.say_no_more()

    assert "ends without its last chunk" in refusal(wire.answer())


# Compressed bodies


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_is_refused_as_soon_as_it_passes_the_limit(server: Running, coding: str) -> None:
    stream = zlib.compressobj(1, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    megabyte = bytes(1_000_000)
    bomb = b"".join(stream.compress(megabyte) for _ in range(500)) + stream.flush()
    before = resident_bytes(server)

    answer = server.ask("POST", INFER, bomb, {"Content-Encoding": coding})

    assert len(bomb) < 5_000_000
    assert "exceeds the maximum allowed input size" in refusal(answer)
    assert resident_bytes(server) - before < 200_000_000


def test_many_small_bombs_in_one_body_are_one_bomb(server: Running) -> None:
    bomb = gzip.compress(bytes(10_000_000)) * 20

    answer = server.ask("POST", INFER, bomb, {"Content-Encoding": "gzip"})

    assert "exceeds the maximum allowed input size" in refusal(answer)


@pytest.mark.parametrize(
    "body",
    [GOOD, gzip.compress(GOOD)[:-4], gzip.compress(GOOD)[:20], gzip.compress(GOOD)[:-8] + bytes(8), b"\x1f\x8b", b""],
    ids=["plain", "cut at its end", "cut", "wrong checksum", "two bytes", "empty"],
)
def test_a_body_that_is_not_compressed_as_it_says_is_refused(server: Running, body: bytes) -> None:
    refusal(server.ask("POST", INFER, body, {"Content-Encoding": "gzip"}))


def test_the_limit_is_an_option_and_the_refusal_names_it(start: Start, repository: Path) -> None:
    running = start("--http-max-input-size=1000")
    text = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [450], "data": [0] * 450}]}).encode()

    refusals = [
        running.ask("POST", INFER, bytes(1001)),
        running.ask("POST", INFER, gzip.compress(bytes(1001)), {"Content-Encoding": "gzip"}),
        running.ask("POST", "/v2/repository/models/echo/load", bytes(1001)),
        running.ask("POST", INFER, text.replace(b" ", b"")),
    ]
    with running.connected() as wire:
        wire.send(chunked(chunk(bytes(500)), chunk(bytes(501))))
        refusals.append(wire.answer())

    assert running.ask("POST", INFER, GOOD).status == 200
    for each in refusals:
        assert "1000 bytes. Use --http-max-input-size to increase the limit." in refusal(each)
    running.stop()


# Sizes within the body


def binary(server: Running, document: object, content: bytes, stated: int | str | None = None) -> Answer:
    """A request with bytes behind its JSON, whose length the header states rightly or not."""
    text = json.dumps(document).encode()
    length = len(text) if stated is None else stated
    return server.ask("POST", INFER, text + content, {"Inference-Header-Content-Length": str(length)})


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


# What is no request at all

NOISE = {
    "depth of arrays": b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":%b%b}]}'
    % (b"[" * 10_000, b"]" * 10_000),
    "depth of objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "depth with NaN": b'{"a":NaN,"inputs":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "depth without end": b"[" * 10_000,
    "depth of parameters": b'{"inputs":[],"parameters":{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}}",
    "empty": b"",
    "null": b"null",
    "number": b"1e999",
    "digits": b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[%b]}]}' % (b"9" * 100_000),
    "text": b"hello",
    "utf-16": json.dumps({"inputs": []}).encode("utf-16"),
    "no utf-8": b'{"inputs":[{"name":"\xff"}]}',
    "surrogate": b'{"id":"\\ud800","inputs":[]}',
    "two documents": GOOD + GOOD,
    "comma": GOOD[:-1] + b",}",
    "inputs are no list": b'{"inputs":{}}',
    "input is no object": b'{"inputs":[1]}',
    "outputs are no list": GOOD[:-1] + b',"outputs":{}}',
    "id is no string": GOOD[:-1] + b',"id":{}}',
    "parameters are no object": GOOD[:-1] + b',"parameters":[]}',
    "twice": b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]},'
    b'{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]}',
    "both sources": json.dumps({"inputs": [BINARY["inputs"][0] | {"data": [1, 2]}]}).encode(),
    "no source": b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1]}]}',
    "too few": b'{"inputs":[{"name":"x","datatype":"FP32","shape":[3],"data":[1,2]}]}',
    "too many": b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1,2]}]}',
}


@pytest.mark.parametrize("body", NOISE.values(), ids=NOISE.keys())
def test_a_body_that_is_no_request_is_the_clients_fault(server: Running, body: bytes) -> None:
    refusal(server.ask("POST", INFER, body))


def test_json_nested_ten_thousand_deep_says_how_deep_it_may_be(server: Running) -> None:
    told = refusal(server.ask("POST", INFER, NOISE["depth of arrays"]))

    assert "JSON nesting depth exceeds maximum allowed limit (100)" in told


@pytest.mark.parametrize("body", [b"[" * 10_000 + b"]" * 10_000, b'{"parameters":' * 10_000 + b"1" + b"}" * 10_000])
@pytest.mark.parametrize("path", ["/v2/repository/index", "/v2/repository/models/echo/load"])
def test_deep_json_is_refused_by_the_other_routes_too(server: Running, path: str, body: bytes) -> None:
    refusal(server.ask("POST", path, body))


def test_a_deep_configuration_in_a_load_request_is_refused(server: Running) -> None:
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000

    answer = server.load("echo", config=deep)
    again = server.load("echo")

    assert "nested too deep" in refusal(answer)
    assert again.status == 200


# What is no HTTP


HEAD = b"GET / HTTP/1.1\r\n"
NO_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "version": b"GET / HTTP/9.9\r\n\r\n",
    "one word": b"GET\r\n\r\n",
    "no colon": HEAD + b"no colon\r\n\r\n",
    "folded": HEAD + b"Host: a\r\n folded: b\r\n\r\n",
    "NUL": b"GET /\0 HTTP/1.1\r\n\r\n",
    "proxy": b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "long header": HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
    "long path": b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "many headers": HEAD + b"X: y\r\n" * 20_000 + b"\r\n",
    "noise": bytes(range(256)) * 400,
    "cut": HEAD + b"Host",
}


@pytest.mark.parametrize("noise", NO_HTTP.values(), ids=NO_HTTP.keys())
def test_what_is_no_http_is_refused_and_the_connection_ended(wire: Wire, noise: bytes) -> None:
    wire.send(noise)
    wire.say_no_more()

    answer = wire.answer()

    assert answer is not None
    assert (400 <= answer.status <= 505, answer.headers["connection"]) == (True, "close")
    assert answer.error
    assert wire.answer() is None


def test_a_client_that_says_nothing_harms_nobody(server: Running) -> None:
    with server.connections(50) as wires:
        for wire in wires[:25]:
            wire.send(b"POST /v2")
        answer = server.infer("echo", 1)

    assert answer.status == 200


def test_a_client_that_leaves_in_the_middle_of_anything_harms_nobody(server: Running) -> None:
    request = post(INFER, GOOD)

    for length in range(0, len(request), 5):
        with server.connected() as wire:
            wire.send(request[:length])

    assert server.infer("echo", 1).status == 200
