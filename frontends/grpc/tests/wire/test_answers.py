"""Header blocks of answers: heads, trailers and statuses, as a decoder of HPACK reads them."""

from urllib.parse import unquote

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as some

from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire import answers


def fields(block):
    return [(bytes(name).decode(), bytes(value).decode()) for name, value in hpack.Decoder().decode(block, raw=True)]


def test_the_head_of_an_answer():
    assert fields(answers.HEAD) == [
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-accept-encoding", "identity,gzip,deflate"),
    ]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_the_head_of_a_compressed_answer_names_its_encoding(encoding):
    assert ("grpc-encoding", encoding) in fields(answers.head(encoding))


def test_the_trailers_of_a_call_that_went_well():
    assert fields(answers.OK_TRAILERS) == [("grpc-status", "0")]


def test_the_trailers_of_a_status():
    block = answers.trailers(RpcError(Code.NOT_FOUND, "no model"))

    assert fields(block) == [("grpc-status", "5"), ("grpc-message", "no model")]


def test_a_status_before_any_message_is_one_header_block():
    block = answers.trailers_only(RpcError(Code.NOT_FOUND, "no model"))

    assert fields(block) == [
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-status", "5"),
        ("grpc-message", "no model"),
    ]


@pytest.mark.parametrize("status", [405, 415])
def test_what_is_not_grpc_gets_a_status_of_http(status):
    assert fields(answers.http_refusal(status)) == [(":status", str(status)), ("content-length", "0")]


@pytest.mark.parametrize(
    ("message", "escaped"),
    [
        ("a b~!", "a b~!"),
        ("100%", "100%25"),
        ("ä\n€", "%C3%A4%0A%E2%82%AC"),
        ("\x7f\x00", "%7F%00"),
        ("\r\nx: y", "%0D%0Ax: y"),
    ],
)
def test_a_message_is_escaped_but_for_printable_ascii(message, escaped):
    assert dict(fields(answers.trailers(RpcError(Code.INTERNAL, message))))["grpc-message"] == escaped


@given(message=some.text() | some.just("\udc80"))
def test_any_message_comes_back(message):
    escaped = dict(fields(answers.trailers(RpcError(Code.INTERNAL, message))))["grpc-message"]

    assert unquote(escaped) == message.encode("utf-8", "replace").decode()
    assert all(" " <= character <= "~" for character in escaped)


@pytest.mark.parametrize("code", Code)
def test_every_status_has_its_number(code):
    assert fields(answers.trailers(RpcError(code, "")))[0] == ("grpc-status", str(int(code)))
