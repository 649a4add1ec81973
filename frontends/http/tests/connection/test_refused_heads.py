"""What the head of a request decides is answered at the head: not behind 100 Continue, and not behind the body."""

import pytest

CONTINUE = b"HTTP/1.1 100 Continue"
RULES = {"rules": ("inference,logging:key=secret",)}
KEY = "key: secret"


def head(target, *headers, method="POST"):
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: h", *headers, "", ""]).encode()


REFUSED = [
    ("/v2/models/m/infer", (), 403),
    ("/v2/models/m/generate", (), 403),
    ("/v2/models/m/versions/0/infer", (KEY,), 400),
    ("/v2/models/m/infer", (KEY, "Request-Timeout: never"), 400),
    ("/v2/models/m/infer", (KEY, "Inference-Header-Content-Length: x"), 400),
    ("/v2/models/m/infer", (KEY, "Inference-Header-Content-Length: -3"), 400),
    ("/v2/models/m/generate", (KEY, "Content-Encoding: gzip"), 400),
    ("/v2/models/m/classify", (KEY,), 404),
    ("/nowhere", (KEY,), 404),
    ("/v2/logging", (), 403),
]
REFUSED_HEADS = pytest.mark.parametrize(("target", "headers", "status"), REFUSED)


@REFUSED_HEADS
@pytest.mark.parametrize("framing", ["Content-Length: 900000", "Transfer-Encoding: chunked"])
def test_a_large_body_is_not_waited_for(connect, fake_server, target, headers, status, framing):
    connection = connect(**RULES)

    connection.send(head(target, *headers, framing))
    refused_at_once = [answer.status for answer in connection.answers()]
    connection.send(bytes(500_000))

    assert refused_at_once == [status]
    assert connection.answers()[0].headers["connection"] == "close"
    assert (len(connection.answers()), fake_server.calls, connection.transport.eof) == (1, [], True)


def test_what_follows_a_refused_body_above_the_limit_of_bodies_is_served(connect, fake_server, infer):
    connection = connect(limit=1000)

    connection.send(head("/nowhere", "Content-Length: 2000") + bytes(2000) + infer())

    assert [answer.status for answer in connection.answers()] == [404]
    assert len(fake_server.calls) == 1


@REFUSED_HEADS
def test_a_client_that_waits_for_our_word_gets_the_refusal(connect, target, headers, status):
    connection = connect(**RULES)

    connection.send(head(target, *headers, "Expect: 100-continue", "Content-Length: 10"))

    assert CONTINUE not in connection.transport.written
    assert [answer.status for answer in connection.answers()] == [status]


@REFUSED_HEADS
@pytest.mark.parametrize("step", [None, 1, 700])
def test_behind_a_small_body_the_connection_goes_on(connect, fake_server, infer, target, headers, status, step):
    connection = connect(**RULES)

    connection.send(head(target, *headers, "Content-Length: 2000"))
    refused_at_once = [answer.status for answer in connection.answers()]
    connection.send(bytes(2000) + infer((), "", KEY), step)
    fake_server.calls[0].answer()

    assert refused_at_once == [status]
    assert [answer.status for answer in connection.answers()] == [status, 200]


@pytest.mark.parametrize("target", ["/nowhere", "/v2/models/m/infer"])
def test_the_answer_to_a_refused_head_request_has_no_body(connect, target):
    connection = connect(**RULES)

    connection.send(head(target, "Content-Length: 2", method="HEAD") + b"{}")

    assert connection.transport.written.endswith(b"\r\n\r\n")
    assert connection.transport.written.count(b"HTTP/1.1 4") == 1
    assert not connection.transport.eof


def test_an_eof_within_a_skipped_body_is_not_answered_again(connect):
    connection = connect(**RULES)

    connection.send(head("/nowhere", "Content-Length: 2000") + bytes(1000))
    connection.protocol.eof_received()

    assert [answer.status for answer in connection.answers()] == [404]


def test_a_wrong_method_is_answered_with_all_right_ones(connect):
    connection = connect(**RULES)

    connection.send(head("/v2/logging", KEY, "Content-Length: 900000", method="PUT"))

    (answer,) = connection.answers()
    assert (answer.status, answer.headers["allow"]) == (405, "get, head, post")


def test_json_longer_than_its_body_is_refused_at_the_head(connect):
    connection = connect()

    connection.send(head("/v2/models/m/infer", "Inference-Header-Content-Length: 800", "Content-Length: 700"))

    (answer,) = connection.answers()
    assert (answer.status, b"should be in range (0, 700), got: 800" in answer.body) == (400, True)


@pytest.mark.parametrize(("keys", "status"), [(("key: secret", "key: x"), 200), (("key: x", "key: secret"), 403)])
def test_the_first_key_counts_where_several_are_sent(connect, fake_server, infer, keys, status):
    fake_server.at_once = True
    connection = connect(**RULES)
    logging = head("/v2/logging", *keys, "Content-Length: 900000")

    connection.send(infer((), "", *keys))
    first = connection.answers()[0].status
    connection.send(logging)

    assert first == status
    assert (len(connection.answers()) == 2) == (status == 403)
