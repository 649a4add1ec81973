"""Bytes on real sockets against a whole server, well behaved and not."""

import asyncio
import json
import socket
import threading
import zlib

import numpy as np
import pytest

BODY = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [2], "data": [1, 2]}]}).encode()
PATH = "/v2/models/mirror_int32/infer"
HEAD = b"POST /v2/models/mirror_int32/infer HTTP/1.1\r\nHost: h\r\n"
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def data_of(answer):
    assert answer[0] == 200, answer
    return json.loads(answer[2])["outputs"][0]["data"]


def test_one_connection_serves_inference_and_all_other_routes_in_order(wire):
    metadata = b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n"

    wire.send(REQUEST + metadata + REQUEST + metadata + REQUEST)
    answers = [wire.answer() for _ in range(5)]

    assert [data_of(answer) for answer in answers[::2]] == [[1, 2]] * 3
    assert [json.loads(answer[2])["name"] for answer in answers[1::2]] == ["naiad"] * 2


def test_bytes_may_come_one_by_one(wire):
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    for byte in REQUEST:
        wire.send(bytes([byte]))

    assert data_of(wire.answer()) == [1, 2]


def test_a_chunked_request_is_served(wire):
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:7], BODY[7:]))

    wire.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n" + REQUEST)

    assert [data_of(wire.answer()) for _ in range(2)] == [[1, 2], [1, 2]]


def test_a_client_that_waits_for_our_word_gets_it(wire):
    wire.send(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
    word = wire.file.readline() + wire.file.readline()
    wire.send(BODY)

    assert word == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert data_of(wire.answer()) == [1, 2]


@pytest.mark.parametrize(
    "request_", [REQUEST.replace(b"1.1", b"1.0", 1), REQUEST.replace(b"Host: h", b"Host: h\r\nConnection: close")]
)
def test_a_connection_that_is_not_to_be_kept_is_closed(wire, request_):
    wire.send(request_)

    assert data_of(wire.answer()) == [1, 2]
    assert wire.answer() is None


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + b"Content-Length: 500\r\n\r\n" + BODY,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"POST /v2/models/mirror_int32/infer HTT",
    ],
    ids=["content-length", "chunked", "head"],
)
def test_a_request_that_ends_too_early_is_reported(wire, request_):
    wire.send(request_)
    wire.socket.shutdown(socket.SHUT_WR)

    status, headers, body = wire.answer()
    assert (status, headers["connection"]) == (400, "close")
    assert "the request is not complete" in json.loads(body)["error"]
    assert wire.answer() is None


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"Content-Length: minus one\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_contradictory_lengths_are_refused_and_the_connection_ended(wire, lines):
    wire.send(HEAD + lines)

    status, _, body = wire.answer()
    assert status == 400
    assert json.loads(body)["error"]
    assert wire.answer() is None


def test_a_body_longer_than_it_says_harms_only_its_own_connection(server, wire):
    wire.send(HEAD + b"Content-Length: 2\r\n\r\n" + BODY + b"\r\n\r\n")

    assert wire.answer()[0] == 400
    assert wire.answer()[0] == 400
    assert wire.answer() is None
    assert server.ask("GET", "/v2/health/ready")[0] == 200


def test_too_large_a_body_is_refused_even_to_a_client_that_sends_it_all(start_server):
    server = start_server(**{"http-max-input-size": 100_000})

    status, _, body = server.ask("POST", PATH, bytes(5_000_000))
    with server.connect() as wire:
        wire.send(HEAD + b"Expect: 100-continue\r\nContent-Length: 5000000\r\n\r\n")
        waiting = wire.answer()

    assert status == waiting[0] == 400
    assert (
        "exceeds the maximum allowed input size of 100000 bytes. Use --http-max-input-size" in json.loads(body)["error"]
    )


def test_a_compressed_body_must_not_unfold_beyond_the_limit(start_server):
    server = start_server(**{"http-max-input-size": 100_000})

    status, _, body = server.ask("POST", PATH, zlib.compress(bytes(5_000_000)), {"Content-Encoding": "deflate"})

    assert (status, "--http-max-input-size" in json.loads(body)["error"]) == (400, True)


def test_a_raw_request_is_answered_in_bytes(server):
    content = np.array([3, 4, 5], np.int32).tobytes()

    status, headers, body = server.ask("POST", PATH, content, {"Inference-Header-Content-Length": "0"})

    length = int(headers["inference-header-content-length"])
    assert (status, headers["content-type"]) == (200, "application/octet-stream")
    assert json.loads(body[:length])["outputs"][0]["parameters"] == {"binary_data_size": 12}
    assert body[length:] == content


def test_json_nested_ten_thousand_deep_is_refused(server):
    nested = b"[" * 10_000 + b"]" * 10_000
    body = b'{"inputs":[{"name":"X","datatype":"INT32","shape":[1],"data":%b}]}' % nested

    status, _, answer = server.ask("POST", PATH, body)

    assert (status, "JSON nesting depth exceeds" in json.loads(answer)["error"]) == (400, True)


def waiting_request(**parameters):
    document = json.loads(BODY) | {"parameters": {"wait": True, **parameters}}
    body = json.dumps(document).encode()
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_a_client_that_leaves_takes_its_request_back(server):
    with server.connect() as first, server.connect() as second:
        first.send(waiting_request())
        assert server.gate.entered.wait(20)
        second.send(REQUEST)
        second.socket.shutdown(socket.SHUT_WR)
        gone = second.answer()
        server.gate.opened.set()
        served = first.answer()

    (statistics,) = json.loads(server.ask("GET", "/v2/models/mirror_int32/stats")[2])["model_stats"]
    assert gone is None
    assert data_of(served) == [1, 2]
    assert statistics["inference_stats"]["success"]["count"] == 1
    assert statistics["inference_stats"]["fail"]["count"] == 1


def test_a_deadline_of_the_caller_is_kept(server):
    request = waiting_request().replace(b"Host: h", b"Host: h\r\nRequest-Timeout: 0.05")
    with server.connect() as wire:
        wire.send(request)
        status, _, body = wire.answer()

    assert (status, "Deadline Exceeded" in json.loads(body)["error"]) == (504, True)


def test_a_thousand_clients_at_once_are_all_served(server):
    async def one(number):
        reader, writer = await asyncio.open_connection(*server.address)
        body = BODY.replace(b"[1, 2]", b"[%d, 2]" % number)
        writer.write(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return json.loads(answer.partition(b"\r\n\r\n")[2])["outputs"][0]["data"][0]

    async def everybody():
        return await asyncio.gather(*(one(number) for number in range(1000)))

    assert asyncio.run(everybody()) == list(range(1000))


def test_a_large_json_body_is_served(server):
    values = list(range(100_000))
    body = BODY.replace(b"[2]", b"[100000]").replace(b"[1, 2]", json.dumps(values).encode())

    assert data_of(server.ask("POST", PATH, body)) == values


def test_a_large_answer_reaches_a_slow_reader_whole(server):
    content = np.arange(2_000_000, dtype=np.int32).tobytes()
    with server.connect() as wire:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        request = HEAD + b"Inference-Header-Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(content) + content
        sender = threading.Thread(target=wire.send, args=(request + REQUEST,))
        sender.start()
        status, headers, body = wire.answer()
        sender.join()
        follower = wire.answer()

    assert status == 200
    assert body[int(headers["inference-header-content-length"]) :] == content
    assert data_of(follower) == [1, 2]
