"""Heads of calls: methods, content types, timeouts, encodings and metadata, as clients write them and should not."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from naiad_grpc.http2.fields import MalformedFieldsError, request_fields
from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire.answers import trailers_only
from naiad_grpc.wire.heads import call_head

FIELDS = {
    b":method": b"POST",
    b":scheme": b"http",
    b":path": b"/t/echo",
    b":authority": b"x",
    b"te": b"trailers",
    b"content-type": b"application/grpc",
}


def head(*further, **changes):
    """The head of a call with these further fields; a change of None leaves a field out."""
    fields = {**FIELDS, **{name.replace("_", "-").encode(): value for name, value in changes.items()}}
    pairs = [(name, value) for name, value in fields.items() if value is not None]
    return call_head(request_fields([*pairs, *further]), {"/t/echo": "echo"}.get)


def with_path(path):
    return call_head(request_fields([*{**FIELDS, b":path": path}.items()]), {"/t/echo": "echo"}.get)


def code(refusal):
    return refusal.code if isinstance(refusal, RpcError) else refusal


def test_a_usual_head_is_a_call():
    call = head((b"user-agent", b"grpc-python/1.0"))

    assert (call.method, call.path, call.refusal, call.timeout) == ("echo", "/t/echo", None, None)
    assert (call.encoding, call.accepted, call.content_length) == ("identity", (), -1)


@pytest.mark.parametrize("text", [b"application/grpc", b"application/grpc+proto", b"application/grpc;charset=utf-8"])
def test_content_types_of_grpc_are_taken(text):
    assert head(content_type=text).refusal is None


@pytest.mark.parametrize(
    "text",
    [None, b"", b"application/json", b"application/grpc-web", b"application/grpcx", b"application/grpc+json", b"grpc"],
)
def test_other_content_types_are_415_of_http(text):
    assert head(content_type=text).refusal == 415


def test_another_method_than_post_is_405_of_http():
    assert call_head(request_fields([*{**FIELDS, b":method": b"GET"}.items()]), lambda _: "echo").refusal == 405


def test_the_field_te_may_be_absent():
    assert head(te=None).refusal is None


@pytest.mark.parametrize("path", [b"/t/dream", b"*", b"/", b"/t/echo/", b"/T/echo", b"/t/echo?x=1", b"\xff\xfe"])
def test_an_unknown_method_is_unimplemented(path):
    assert code(with_path(path).refusal) is Code.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"1H", 3600),
        (b"2M", 120),
        (b"3S", 3),
        (b"250m", 0.25),
        (b"500u", 0.0005),
        (b"1000n", 0.000001),
        (b"00000001S", 1),
        (b"99999999H", 99999999 * 3600),
    ],
)
def test_a_timeout_has_up_to_eight_digits_and_a_unit(text, seconds):
    call = head((b"grpc-timeout", text))

    assert (call.timeout, call.refusal) == (pytest.approx(seconds), None)


@pytest.mark.parametrize("text", [b"0S", b"00000000n"])
def test_a_timeout_of_nothing_has_passed_already(text):
    assert code(head((b"grpc-timeout", text)).refusal) is Code.DEADLINE_EXCEEDED


@pytest.mark.parametrize(
    "text", [b"", b"S", b"1", b"123456789S", b"-1S", b"+1S", b"1.5S", b"1 S", b"1s", b"1h", b"1SS", b"\xb2S", b"1S\x0b"]
)
def test_another_timeout_is_an_internal_error(text):
    call = head((b"grpc-timeout", text))

    assert (call.timeout, code(call.refusal)) == (None, Code.INTERNAL)


@pytest.mark.parametrize("name", ["gzip", "deflate", "identity"])
def test_known_encodings_are_taken(name):
    call = head((b"grpc-encoding", name.encode()))

    assert (call.encoding, call.refusal) == (name, None)


@pytest.mark.parametrize("name", [b"br", b"snappy", b"GZIP", b"gzip,deflate", b"", b"\xff", b"x" * 5000])
def test_an_unknown_encoding_is_unimplemented_and_the_answer_names_the_known_ones(name):
    refusal = head((b"grpc-encoding", name)).refusal

    assert code(refusal) is Code.UNIMPLEMENTED
    assert b"grpc-accept-encoding\x15identity,gzip,deflate" in trailers_only(refusal)
    assert len(trailers_only(refusal)) < 500


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        (b"identity,deflate,gzip", ("deflate", "gzip")),
        (b"gzip", ("gzip",)),
        (b" gzip , br ", ("gzip",)),
        (b"identity", ()),
        (b",,", ()),
        (b"\xff,gzip", ("gzip",)),
    ],
)
def test_the_accepted_encodings_are_those_that_both_know_in_the_order_of_the_client(text, accepted):
    assert head((b"grpc-accept-encoding", text.strip())).accepted == accepted


@pytest.mark.parametrize(("size", "refused"), [(16000, False), (17000, True)])
def test_metadata_above_the_announced_size_exhaust_it(size, refused):
    refusal = head((b"x-large", b"x" * size)).refusal

    assert (code(refusal) is Code.RESOURCE_EXHAUSTED) is refused


@pytest.mark.parametrize("text", [b"-1", b"x", b"1.0", b"9" * 19, b""])
def test_a_content_length_that_is_no_number_is_malformed(text):
    with pytest.raises(MalformedFieldsError):
        head((b"content-length", text))


# Metadata


def metadata(*further):
    """What a call sees of these fields, without the fields that every call has."""
    return head(*further).metadata()


def test_metadata_are_the_fields_of_the_caller_in_their_order():
    pairs = metadata((b"b", b"1"), (b"user-agent", b"me"), (b"a", b"2"), (b"b", b"3"))

    assert pairs == [("b", "1"), ("user-agent", "me"), ("a", "2"), ("b", "3")]


def test_fields_of_the_transport_are_no_metadata():
    of_transport = ("grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "content-length")
    values = (b"1S", b"gzip", b"gzip", b"5")

    assert metadata(*zip(map(str.encode, of_transport), values, strict=True)) == []


def test_text_that_is_not_utf8_is_no_reason_to_fail():
    assert metadata((b"a", b"\xff")) == [("a", "\ufffd")]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"AAEC", [b"\0\1\2"]),
        (b"AAE=", [b"\0\1"]),
        (b"AAE", [b"\0\1"]),
        (b"AA==", [b"\0"]),
        (b"AA", [b"\0"]),
        (b"/+8=", [b"\xff\xef"]),
        (b"", [b""]),
        (b"AAEC,AAE=", [b"\0\1\2", b"\0\1"]),
        (b"AAEC, AAE ,AA", [b"\0\1\2", b"\0\1", b"\0"]),
        (b",AA,", [b"", b"\0", b""]),
    ],
)
def test_binary_metadata_may_be_padded_or_not_and_joined_by_commas(text, values):
    assert metadata((b"x-bin", text)) == [("x-bin", value) for value in values]


@pytest.mark.parametrize("text", [b" a b", b"a b ", b"\ta b\t ", b"a b"])
def test_blanks_around_a_value_are_not_part_of_it(text):
    assert metadata((b"authorization", text)) == [("authorization", "a b")]


def test_binary_metadata_that_come_twice_are_two_values():
    assert metadata((b"x-bin", b"AA"), (b"x-bin", b"AQ")) == [("x-bin", b"\0"), ("x-bin", b"\1")]


@pytest.mark.parametrize(
    "text",
    [b"A", b"AAAAA", b"A A", b"AA=A", b"@@@@", b"A@AE", b"AAAA@@@@", b"AA==AA==", b"_-8=", b"\xff\xff", b"AA===="],
)
def test_what_is_no_base64_has_an_empty_value(text):
    assert metadata((b"x-bin", text)) == [("x-bin", b"" if text != b"AA====" else b"\0")]


@given(value=some.binary(max_size=60), padded=some.booleans())
def test_any_bytes_come_through_base64(value, padded):
    text = base64.b64encode(value)

    assert metadata((b"x-bin", text if padded else text.rstrip(b"="))) == [("x-bin", value)]


@given(text=some.binary(max_size=40))
def test_any_text_in_a_binary_field_is_metadata(text):
    if re.search(rb"[\x00\r\n]|^[ \t]|[ \t]$", text):
        return

    pairs = metadata((b"x-bin", text))

    assert [name for name, _ in pairs] == ["x-bin"] * (text.count(b",") + 1)
    assert all(isinstance(value, bytes) for _, value in pairs)
