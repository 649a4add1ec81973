"""Bodies that lie about their length: too short, too long, none, and chunks that do not add up."""

import gzip
import json
from pathlib import Path

import pytest

from .asking import ECHO
from .conftest import Start
from .running import Answer, Running, Wire, post, refusal

GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()


def served(answer: Answer | None) -> bool:
    return answer is not None and answer.status == 200


# The length of the body


@pytest.mark.parametrize("stated", [len(GOOD) + 1, 10_000, 60_000_000])
def test_a_body_shorter_than_its_length_is_waited_for_and_refused_at_its_end(wire: Wire, stated: int) -> None:
    wire.send(post(ECHO, GOOD, Content_Length=stated))
    wire.say_no_more()

    told = refusal(wire.answer())

    assert f"the body ends after {len(GOOD)} of the {stated} bytes" in told
    assert wire.answer() is None


@pytest.mark.parametrize("stated", [0, 1, len(GOOD) - 1])
def test_a_body_longer_than_its_length_is_read_as_far_as_it_says_and_the_rest_is_no_request(
    wire: Wire, stated: int
) -> None:
    wire.send(post(ECHO, GOOD + b"\r\n\r\n", Content_Length=stated))

    assert "failed to parse the request JSON buffer" in refusal(wire.answer())
    assert "not valid HTTP" in refusal(wire.answer())
    assert wire.answer() is None


def test_a_body_without_a_length_counts_as_none(wire: Wire) -> None:
    wire.send(f"POST {ECHO} HTTP/1.1\r\nHost: h\r\n\r\n".encode() + GOOD + b"\r\n\r\n")

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
    wire.send(f"POST {ECHO} HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\nabcde".encode())

    answer = wire.answer()

    assert answer is not None
    assert (answer.status in (400, 501), answer.headers["connection"]) == (True, "close")
    assert answer.error
    assert wire.answer() is None


def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(wire: Wire) -> None:
    wire.send(post(ECHO, b"", Content_Length=67108865))

    assert "67108865 bytes exceeds the maximum allowed input size of 67108864 bytes" in refusal(wire.answer())


def test_bodies_that_are_announced_and_never_come_take_no_memory(server: Running) -> None:
    before = server.resident_bytes

    with server.connections(100) as wires:
        for wire in wires:
            wire.send(post(ECHO, b"{", Content_Length=67108864))
        server.read_all()
        grown = server.resident_bytes - before

    assert grown < 50_000_000


# Chunks


def chunked(*pieces: bytes) -> bytes:
    head = f"POST {ECHO} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head.encode() + b"".join(pieces)


def chunk(content: bytes, stated: int | None = None) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content) if stated is None else stated, content)


def test_chunks_of_any_size_with_extensions_and_trailers_are_put_together(wire: Wire) -> None:
    pieces = [chunk(GOOD[start : start + 7]) for start in range(0, len(GOOD), 7)]
    pieces[0] = pieces[0].replace(b"\r\n", b';name="value"\r\n', 1)

    wire.send(chunked(*pieces, b"0\r\nX-Trailer: yes\r\n\r\n") + post(ECHO, GOOD))

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


def test_the_limit_is_an_option_and_the_refusal_names_it(start: Start, repository: Path) -> None:
    running = start("--http-max-input-size=1000")
    text = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [450], "data": [0] * 450}]}).encode()

    refusals = [
        running.ask("POST", ECHO, bytes(1001)),
        running.ask("POST", ECHO, gzip.compress(bytes(1001)), {"Content-Encoding": "gzip"}),
        running.ask("POST", "/v2/repository/models/echo/load", bytes(1001)),
        running.ask("POST", ECHO, text.replace(b" ", b"")),
    ]
    with running.connected() as wire:
        wire.send(chunked(chunk(bytes(500)), chunk(bytes(501))))
        refusals.append(wire.answer())

    assert running.ask("POST", ECHO, GOOD).status == 200
    for each in refusals:
        assert "1000 bytes. Use --http-max-input-size to increase the limit." in refusal(each)
    running.stop()
