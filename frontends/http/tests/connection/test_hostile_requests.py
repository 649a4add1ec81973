"""Bodies that are no requests, lengths that are wrong, and bytes that are no HTTP: refused, and never submitted."""

import json
import struct

import pytest

PATH = "/v2/models/m/infer"
GOOD = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()
BINARY = {"name": "X", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}


def post(body, *lines, length=None, path=PATH):
    """A request; `length` is what Content-Length says of its body."""
    head = [f"POST {path} HTTP/1.1", "Host: h", *lines, f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*head, "", ""]).encode() + body


def binary(tensor, content, stated=None):
    """A request with bytes behind its JSON, whose length the header states rightly or not."""
    text = json.dumps({"inputs": [tensor]}).encode()
    return post(text + content, f"Inference-Header-Content-Length: {len(text) if stated is None else stated}")


def chunked(*pieces):
    head = f"POST {PATH} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head.encode() + b"".join(pieces)


def chunk(content, stated=None):
    return b"%x\r\n%b\r\n" % (len(content) if stated is None else stated, content)


def in_json(data):
    return b'{"inputs":[{"name":"X","datatype":"FP32","shape":[1],"data":%b}]}' % data


BODIES = {
    "depth of arrays": in_json(b"[" * 10_000 + b"]" * 10_000),
    "depth of objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "depth with NaN": b'{"a":NaN,"inputs":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "depth without end": b"[" * 10_000,
    "depth of parameters": b'{"inputs":[],"parameters":{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}}",
    "empty": b"",
    "null": b"null",
    "number": b"1e999",
    "digits": in_json(b"[%b]" % (b"9" * 5000)),
    "text": b"hello",
    "utf-16": json.dumps({"inputs": []}).encode("utf-16"),
    "no utf-8": b'{"inputs":[{"name":"\xff"}]}',
    "surrogate": b'{"id":"\\ud800","inputs":[]}',
    "two documents": GOOD + GOOD,
    "comma": GOOD[:-1] + b",}",
    "inputs are no list": b'{"inputs":{}}',
    "outputs are no list": GOOD[:-1] + b',"outputs":{}}',
    "id is no string": GOOD[:-1] + b',"id":{}}',
    "parameters are no object": GOOD[:-1] + b',"parameters":[]}',
    "too few": b'{"inputs":[{"name":"X","datatype":"FP32","shape":[3],"data":[1,2]}]}',
    "too many": in_json(b"[1, 2]"),
}
STATED = ["-1", "1000000", "99999999999999999999", "ten", "1e2", "10"]
SIZES = [0, 4, 12, 2**40, 2**64, -1, 1.5, "8", None, True, [8]]
SHAPES = [
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
]
STRINGS = {
    "length beyond the end": struct.pack("<I", 100) + b"abc",
    "largest length": struct.pack("<I", 2**32 - 1) + b"abc",
    "cut length": b"\3\0",
    "too few": struct.pack("<I", 3) + b"abc",
    "too many": struct.pack("<I", 0) * 3,
    "rest": struct.pack("<I", 1) + b"a" + struct.pack("<I", 1) + b"b" + b"c",
    "nothing": b"",
}
REFUSED = {
    **{f"body: {name}": post(body) for name, body in BODIES.items()},
    **{f"length of the JSON: {stated}": binary(BINARY, bytes(8), stated) for stated in STATED},
    **{f"{count} bytes": binary(BINARY, bytes(count)) for count in (0, 7, 9, 10_000)},
    **{f"size: {size}": binary({**BINARY, "parameters": {"binary_data_size": size}}, bytes(8)) for size in SIZES},
    **{f"shape: {shape}": binary({**BINARY, "shape": shape}, bytes(8)) for shape in [*SHAPES, None]},
    **{
        f"strings: {name}": binary(
            {"name": "X", "datatype": "BYTES", "shape": [1, 2], "parameters": {"binary_data_size": len(content)}},
            content,
        )
        for name, content in STRINGS.items()
    },
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED.keys())
def test_a_body_that_is_no_request_is_refused_and_the_connection_goes_on(connection, fake_server, infer, request_):
    connection.send(request_ + infer())

    (answer,) = connection.answers()
    assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
    assert "Traceback" not in json.loads(answer.body)["error"]
    assert len(fake_server.calls) == 1


HEAD = b"GET / HTTP/1.1\r\n"
ENDED = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "version": b"GET / HTTP/9.9\r\n\r\n",
    "one word": b"GET\r\n\r\n",
    "no colon": HEAD + b"no colon\r\n\r\n",
    "NUL": b"GET /\0 HTTP/1.1\r\n\r\n",
    "proxy": b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "long header": HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
    "long path": b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "many headers": HEAD + b"X: y\r\n" * 20_000 + b"\r\n",
    "noise": bytes(range(256)) * 400,
    "cut": HEAD + b"Host",
    "zeros": b"\x00" * 200_000,
    "length of letters": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: five\r\n\r\nabcde",
    "length twice": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "chunked twice": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\nabcde",
    "unknown coding": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: nonsense\r\n\r\nabcde",
    "body beyond the limit": post(b"", length=67_108_865),
    "body too short": post(GOOD, length=10_000),
    "chunk too long": chunked(chunk(GOOD, len(GOOD) - 1), b"0\r\n\r\n"),
    "chunk too short": chunked(chunk(GOOD, len(GOOD) + 1), b"0\r\n\r\n"),
    "chunk of letters": chunked(b"zz\r\n"),
    "chunk with bare newlines": chunked(b"5\nabcde\n0\n\n"),
    "chunk beyond the limit": chunked(b"7fffffff\r\n"),
    "endless extension": chunked(b"5;" + b"x" * 100_000 + b"\r\n"),
    "too many chunks": chunked(chunk(b"x") * 65_537),
    "no last chunk": chunked(chunk(GOOD)),
}


@pytest.mark.parametrize("content", ENDED.values(), ids=ENDED.keys())
def test_what_is_no_http_is_refused_and_the_connection_ended(connection, fake_server, content):
    connection.send(content)
    if not connection.transport.eof:
        connection.protocol.eof_received()

    (answer,) = connection.answers()
    assert (400 <= answer.status <= 505, answer.headers["connection"]) == (True, "close")
    assert json.loads(answer.body)["error"]
    assert fake_server.calls == []


BARE_NEWLINES = {
    "all": b"POST / HTTP/1.1\nHost: h\nContent-Length: 0\n\n",
    "of the request line": b"GET / HTTP/1.1\nHost: h\r\n",
    "of the last header": HEAD + b"Host: h\n",
    "of the empty line": HEAD + b"Host: h\r\n\n",
}


@pytest.mark.parametrize("content", BARE_NEWLINES.values(), ids=BARE_NEWLINES.keys())
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_head_whose_lines_end_without_cr_is_refused_without_waiting_for_more(connection, fake_server, content, size):
    for start in range(0, len(content), size):
        connection.send(content[start : start + size])

    (answer,) = connection.answers()
    assert (answer.status, answer.headers["connection"], fake_server.calls) == (400, "close", [])
    assert "end each with CR and LF" in json.loads(answer.body)["error"]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_empty_lines_before_a_request_may_end_without_cr(connection, fake_server, infer, size):
    fake_server.at_once = True
    content = b"\n\r\n\n" + infer() + b"\n\n" + infer()

    for start in range(0, len(content), size):
        connection.send(content[start : start + size])

    assert [answer.status for answer in connection.answers()] == [200, 200]


@pytest.mark.parametrize("length", [0, 1, len(GOOD) - 1])
def test_what_is_behind_a_body_that_is_cut_off_by_its_length_is_no_request(connection, fake_server, length):
    connection.send(post(GOOD + b"\r\n\r\n", length=length))

    assert [answer.status for answer in connection.answers()] == [400, 400]
    assert (fake_server.calls, connection.transport.eof) == ([], True)


def test_chunks_of_any_size_with_extensions_and_trailers_are_put_together(connection, fake_server):
    fake_server.at_once = True
    pieces = [chunk(GOOD[start : start + 7]) for start in range(0, len(GOOD), 7)]
    pieces[0] = pieces[0].replace(b"\r\n", b';name="value"\r\n', 1)

    connection.send(chunked(*pieces, b"0\r\nX-Trailer: yes\r\n\r\n") + post(GOOD))

    assert [answer.status for answer in connection.answers()] == [200, 200]
