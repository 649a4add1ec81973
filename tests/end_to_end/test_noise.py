"""Bodies that are no requests, bytes that are no HTTP, and clients that leave in the middle."""

import json

import pytest

from .asking import ECHO
from .running import Running, Wire, post, refusal

GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()
BINARY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]}

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
    refusal(server.ask("POST", ECHO, body))


def test_json_nested_ten_thousand_deep_says_how_deep_it_may_be(server: Running) -> None:
    told = refusal(server.ask("POST", ECHO, NOISE["depth of arrays"]))

    assert "JSON nesting depth exceeds maximum allowed limit (100)" in told


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
    request = post(ECHO, GOOD)

    for length in range(0, len(request), 5):
        with server.connected() as wire:
            wire.send(request[:length])

    assert server.infer("echo", 1).status == 200
