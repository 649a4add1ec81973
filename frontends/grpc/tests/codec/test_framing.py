"""Our reading of the framing against protobuf's: the same messages are taken, and they say the same."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec.framing import header, scan, split, varint
from naiad_grpc.codec.templates import read_message
from naiad_grpc.messages import message_class

ModelInferRequest = message_class("ModelInferRequest")

small = st.integers(0, 300)
numbers = st.one_of(small, st.integers(0, 2**64 - 1))
texts = st.text(max_size=5).map(str.encode)


def framed(number, kind, content=b""):
    return varint(number << 3 | kind) + content


def with_length(number, content):
    return framed(number, 2, varint(len(content)) + content)


def overlong(tag, count):
    """The tag in more bytes than it needs."""
    return bytes(((tag & 0x7F) | 0x80,)) + b"\x80" * count + b"\x00"


@st.composite
def inputs(draw):
    sizes = draw(st.lists(numbers, max_size=3))
    packed = with_length(3, b"".join(map(varint, sizes)))
    unpacked = b"".join(framed(3, 0, varint(size)) for size in sizes)
    return draw(texts.map(lambda name: with_length(1, name))) + draw(st.sampled_from((packed, unpacked)))


unknown = st.one_of(
    st.builds(lambda number, value: framed(number, 0, varint(value)), st.integers(8, 2**29 - 1), numbers),
    st.builds(lambda number, content: framed(number, 1, content), small, st.binary(min_size=8, max_size=8)),
    st.builds(lambda number, content: framed(number, 5, content), small, st.binary(min_size=4, max_size=4)),
    st.builds(with_length, st.integers(8, 3000), st.binary(max_size=5)),
)
groups = st.recursive(unknown, lambda inner: st.lists(inner, max_size=3).map(lambda parts: group(9, parts)))


def group(number, parts):
    return framed(number, 3) + b"".join(parts) + framed(number, 4)


fields = st.one_of(
    st.builds(with_length, st.sampled_from((1, 2, 3)), texts),
    st.builds(with_length, st.sampled_from((5, 6)), inputs()),
    st.builds(with_length, st.just(7), st.binary(max_size=200)),
    st.builds(lambda content: overlong(0x3A, 2) + varint(len(content)) + content, st.binary(max_size=3)),
    groups,
    st.binary(max_size=4),
)
messages = st.lists(fields, max_size=8).map(b"".join)
in_order = st.tuples(
    texts.map(lambda name: with_length(1, name)),
    st.one_of(st.just(b""), st.binary(max_size=150).map(lambda name: with_length(3, name))),
    st.lists(inputs().map(lambda each: with_length(5, each)), max_size=3).map(b"".join),
    st.lists(st.binary(max_size=300).map(lambda each: with_length(7, each)), max_size=3).map(b"".join),
).map(b"".join)


def ours(message):
    """The message as we read it, None when we refuse it."""
    try:
        text, contents = split(message)
        read = read_message(text)
    except InvalidArgumentError:
        return None
    read.raw_input_contents.extend(message[start : start + size] for start, size in contents)
    return read


def theirs(message):
    try:
        return ModelInferRequest.FromString(message)
    except DecodeError:
        return None


@given(messages)
def test_every_message_means_what_it_means_to_protobuf(message):
    assert ours(message) == theirs(message)


@given(messages, st.integers(0, 50))
def test_a_message_that_is_cut_off_means_what_it_means_to_protobuf(message, cut):
    part = message[: max(0, len(message) - cut)]

    assert ours(part) == theirs(part)


@given(st.binary(max_size=60))
def test_any_bytes_mean_what_they_mean_to_protobuf(message):
    assert ours(message) == theirs(message)


@given(st.one_of(messages, in_order))
def test_a_layout_says_where_the_parts_of_a_message_are(message):
    layout = scan(message)

    if layout is None:
        return
    before, after = message[: layout.id_start], message[layout.id_end : layout.contents_start]
    id_field = message[layout.id_start : layout.id_end]
    assert split(message) == (before + id_field + after, layout.contents)
    assert id_field in (
        b"",
        header(0x1A, layout.id_end - layout.text_start) + message[layout.text_start : layout.id_end],
    )
    assert b"id" not in {descriptor.name.encode() for descriptor, _ in (theirs(before + after) or _NONE).ListFields()}


_NONE = ModelInferRequest()


@given(in_order)
def test_messages_as_clients_write_them_have_a_layout(message):
    assert scan(message) is not None


@pytest.mark.parametrize(
    "message",
    [
        b"\x3a\x02\x00\x1a\x01a",  # the content swallows the id, whose size is missing
        b"\x0a\x05ab",
        b"\x0a",
        b"\x3a\xff\xff\xff\xff\x7fabc",
        b"\x3a" + b"\x80" * 12,
        b"\x0c",
        b"\x0f\x00",
        b"\x00\x00",
        framed(9, 3),
        framed(9, 3) + framed(10, 4),
        framed(9, 3) * 200 + framed(9, 4) * 200,
    ],
)
def test_what_is_no_message_is_refused(message):
    with pytest.raises(InvalidArgumentError, match="failed to parse the request as a ModelInferRequest message"):
        read_message(split(message)[0])

    assert theirs(message) is None


@given(st.integers(0, 2**64 - 1))
def test_a_varint_is_that_of_protobuf(value):
    parameter = message_class("InferParameter")(uint64_param=value)

    assert parameter.SerializeToString() == b"\x28" + varint(value)


@given(st.integers(-(2**63), -1))
def test_a_negative_number_takes_ten_bytes(value):
    parameter = message_class("InferParameter")(int64_param=value)

    assert parameter.SerializeToString() == b"\x10" + varint(value)


def test_a_size_that_is_too_long_is_no_layout():
    assert scan(b"\x0a" + b"\xff" * 9 + b"\x01") is None
