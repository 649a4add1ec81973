"""Heads of HTTP requests."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_http.codec.request_head import RequestHead
from naiad_http.heads import HeadReader
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_http.statuses import HttpError


def read(*lines, rules=(), host=b"Host: h"):
    if host and lines[0].endswith(b" HTTP/1.1") and not any(line.startswith(b"Host") for line in lines):
        lines = (*lines, host)
    block = b"".join(line + b"\r\n" for line in (*lines, b""))
    return HeadReader(RequestHeadReader("", Restrictions(rules))).read(block)


def test_a_head_says_what_is_asked_and_how_the_body_comes():
    head = read(b"POST /v2/repository/index?a=b HTTP/1.1", b"Host: h", b"Content-Length:  12 ", b"X-A:  1")

    assert (head.method, head.path, head.query, head.length) == ("POST", b"/v2/repository/index", b"a=b", 12)
    assert head.headers == ((b"host", b"h"), (b"content-length", b"12 "), (b"x-a", b"1"))
    assert (head.keep_alive, head.chunked, head.expects_continue, head.request_head) == (True, False, False, None)


def test_the_head_of_an_infer_request_has_a_request_head():
    head = read(b"POST /v2/models/m/versions/2/infer HTTP/1.1", b"Inference-Header-Content-Length: 5")

    assert head.request_head == RequestHead("m", 2, header_length=5)


def test_a_query_says_nothing():
    assert read(b"POST /v2/models/m/infer?trace=on HTTP/1.1").request_head == RequestHead("m")


def test_the_host_may_stand_in_the_target():
    head = read(b"POST http://host:8000/v2/models/m/infer HTTP/1.1", b"Host: host")

    assert head.request_head == RequestHead("m")


@pytest.mark.parametrize(
    "lines",
    [
        (b"GET /v2/models/m/infer HTTP/1.1",),
        (b"POST /v2/models/m HTTP/1.1",),
    ],
)
def test_the_head_of_another_request_has_no_request_head(lines):
    head = read(*lines)

    assert (head.request_head, head.refusal, head.direct) == (None, None, False)


@pytest.mark.parametrize(
    ("header", "direct"),
    [
        (b"Content-Encoding: gzip", False),
        (b"Content-Encoding: br", False),
        (b"Accept-Encoding: gzip, deflate", False),
        (b"Content-Encoding: identity", True),
        (b"Accept-Encoding: identity", True),
        (b"Accept-Encoding: br", True),
    ],
)
def test_only_what_is_not_compressed_is_answered_directly(header, direct):
    head = read(b"POST /v2/models/m/infer HTTP/1.1", b"Inference-Header-Content-Length: 5", header)

    assert head.request_head == RequestHead("m", header_length=5)
    assert (head.direct, head.split) == (direct, 5 if direct else None)


def test_an_infer_request_that_is_invalid_brings_its_refusal():
    head = read(b"POST /v2/models/m/versions/0/infer HTTP/1.1")

    assert isinstance(head.refusal, InvalidArgumentError)
    assert head.request_head is None


def test_a_restricted_inference_is_refused_in_the_head():
    head = read(b"POST /v2/models/m/infer HTTP/1.1", rules=["inference:k=v"])

    assert isinstance(head.refusal, HttpError)


@pytest.mark.parametrize(
    ("lines", "keep_alive"),
    [
        ((b"GET / HTTP/1.1",), True),
        ((b"GET / HTTP/1.1", b"Connection: close"), False),
        ((b"GET / HTTP/1.1", b"Connection: TE", b"Connection: x , Close"), False),
        ((b"GET / HTTP/1.1", b"Connection: Upgrade", b"Upgrade: h2c"), True),
        ((b"GET / HTTP/1.0",), False),
        ((b"GET / HTTP/1.0", b"Connection: keep-alive"), False),
    ],
)
def test_the_version_and_the_connection_header_say_whether_to_keep_it(lines, keep_alive):
    assert read(*lines).keep_alive is keep_alive


def test_a_client_of_http_1_0_is_never_reported_to_continue():
    expect = b"Expect: 100-Continue"

    assert read(b"POST / HTTP/1.1", expect).expects_continue
    assert not read(b"POST / HTTP/1.0", expect).expects_continue


def test_a_chunked_body_is_announced():
    assert read(b"POST / HTTP/1.1", b"Transfer-Encoding: Chunked").chunked


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ((b"BREW / HTTP/1.1",), 400),
        ((b"GET /a b HTTP/1.1",), 400),
        ((b"GET / HTTP/1.1", b"A : x"), 400),
        ((b"GET / HTTP/1.1", b"A: x\x00y"), 400),
        ((b"GET / HTTP/1.1", b"A: x", b" folded"), 400),
        ((b"\x16\x03\x01\x02\x00\x01",), 400),
        ((b"CONNECT host:80 HTTP/1.1",), 400),
        ((b"POST / HTTP/1.1", b"Content-Length: 5", b"Content-Length: 5"), 400),
        ((b"POST / HTTP/1.1", b"Content-Length: 5", b"Content-Length: 6"), 400),
        ((b"POST / HTTP/1.1", b"Content-Length: 5, 5"), 400),
        ((b"POST / HTTP/1.1", b"Content-Length: -5"), 400),
        ((b"POST / HTTP/1.1", b"Content-Length: +5"), 400),
        ((b"POST / HTTP/1.1", b"Content-Length: 99999999999999999999999"), 400),
        ((b"POST / HTTP/1.1", b"Content-Length: 5", b"Transfer-Encoding: chunked"), 400),
        ((b"POST / HTTP/1.1", b"Transfer-Encoding: chunked", b"Content-Length: 5"), 400),
        ((b"POST / HTTP/1.1", b"Transfer-Encoding: identity"), 400),
        ((b"POST / HTTP/1.1", b"Transfer-Encoding: chunked, identity"), 400),
        ((b"POST / HTTP/1.1", b"Transfer-Encoding: gzip, chunked"), 501),
        ((b"POST / HTTP/1.1", b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked"), 501),
        ((b"GET / HTTP/1.1", b"Host: a b"), 400),
        ((b"GET / HTTP/1.1", b"Host: a/b"), 400),
        ((b"GET / HTTP/1.1", b"Host: user@a"), 400),
        ((b"GET / HTTP/1.1", b"Host: a:80:80"), 400),
        ((b"GET / HTTP/1.0", b"Host: a,b c"), 400),
        ((b"GET / HTTP/2.0",), 505),
        ((b"PRI * HTTP/2.0",), 505),
    ],
)
def test_what_is_no_request_is_refused(lines, status):
    with pytest.raises(HttpError) as caught:
        read(*lines)

    assert caught.value.status == status


@pytest.mark.parametrize(
    "host", [b"", b"a_b.example:8000", b"10.0.0.1", b"[::1]:80", b"[fe80::1%25eth0]", b"%2Frun%2Fs"]
)
def test_a_host_is_a_name_or_an_address_with_or_without_a_port(host):
    assert read(b"GET / HTTP/1.1", b"Host: " + host).headers == ((b"host", host),)


def test_a_head_that_comes_again_is_cached():
    reader = HeadReader(RequestHeadReader("", Restrictions()))
    block = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\n\r\n"

    assert reader.read(block) is reader.read(block)


def test_a_long_head_is_not_cached():
    reader = HeadReader(RequestHeadReader("", Restrictions()))
    block = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nCookie: %b\r\n\r\n" % (b"c" * 3000)

    assert reader.read(block) is not reader.read(block)


def test_a_cached_refusal_keeps_no_frames_of_the_connection_that_sent_it():
    head = read(b"POST /v2/models/m/infer HTTP/1.1", b"Request-Timeout: never")

    assert isinstance(head.refusal, InvalidArgumentError)
    assert (head.refusal.__traceback__, head.refusal.__context__) == (None, None)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ((b"GET /v2 HTTP/1.1",), 0),
        ((b"POST /v2/models/m/infer HTTP/1.1", b"A: b"), 0),
        ((b"GET /v2 HTTP/1.1", b"Host: a", b"Host: b"), 2),
        ((b"GET /v2 HTTP/1.0", b"Host: a", b"host: a"), 2),
    ],
)
def test_a_request_has_one_host(lines, count):
    with pytest.raises(HttpError, match=f"one Host header, and this one has {count}") as caught:
        read(*lines, host=b"")

    assert caught.value.status == 400


def test_a_client_of_http_1_0_needs_no_host():
    assert read(b"GET /v2 HTTP/1.0", host=b"").path == b"/v2"
