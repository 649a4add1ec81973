"""Bytes on real sockets against a whole server, well behaved and not."""

import json
import socket
import threading

import numpy as np

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


def test_too_large_a_body_is_refused_even_to_a_client_that_sends_it_all(start_server):
    server = start_server(**{"http-max-input-size": 100_000})

    status, _, body = server.ask("POST", PATH, bytes(5_000_000))
    with server.connect() as wire:
        wire.send(HEAD + b"Expect: 100-continue\r\nContent-Length: 5000000\r\n\r\n")
        waiting = wire.answer()

    assert status == waiting[0] == 400
    assert "input size of 100000 bytes. Use --http-max-input-size" in json.loads(body)["error"]


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
