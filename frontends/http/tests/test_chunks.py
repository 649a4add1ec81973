"""Chunked bodies, whole, in pieces and malformed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad_http.chunks import ChunkReader
from naiad_http.statuses import HttpError


def read(content, step=None, limit=1000):
    """The reader and how many of the bytes it took, fed in pieces of `step` bytes."""
    reader = ChunkReader(limit)
    taken = 0
    step = step or max(1, len(content))
    while taken < len(content) and not reader.done:
        taken += reader.feed(memoryview(content)[taken : taken + step])
    return reader, taken


@pytest.mark.parametrize("step", [None, 1, 2, 3, 7])
def test_chunks_are_put_together_in_any_pieces(step):
    content = b"3\r\nabc\r\n0a ;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"

    reader, taken = read(content + b"GET / HTTP/1.1", step)

    assert reader.done
    assert bytes(reader.view()) == b"abc0123456789"
    assert taken == len(content)


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.integers(1, 40))
def test_any_chunks_in_any_pieces_give_the_body(chunks, step):
    content = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"

    reader, taken = read(content, step)

    assert reader.done
    assert bytes(reader.view()) == b"".join(chunks)
    assert taken == len(content)


def test_a_body_without_its_last_chunk_is_not_done():
    reader, taken = read(b"3\r\nabc\r\n")

    assert not reader.done
    assert taken == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x\r\n", "does not start with its size"),
        (b"-1\r\n", "does not start with its size"),
        (b"0x1\r\n", "does not start with its size"),
        (b" 1\r\n", "does not start with its size"),
        (b"\r\n", "does not start with its size"),
        (b"11111111111111111\r\n", "does not start with its size"),
        (b"1\na\n", "does not end with CRLF"),
        (b"1\r\nab\r\n", "longer than its size says"),
        (b"1\r\na\n", "does not end with CRLF"),
        (b"1" * 5000, "a line is longer than"),
        (b"0\r\n" + b"T: x\r\n" * 200, "more than 128 trailers"),
        (b"0\r\nT\r\n\r\n", "a trailer is not NAME: VALUE"),
        (b"0\r\nT : x\r\n\r\n", "a trailer is not NAME: VALUE"),
        (b"0\r\nT: x\rX: y\r\n\r\n", "a trailer is not NAME: VALUE"),
        (
            b"fffffff\r\n",
            "request JSON size of 268435455 bytes exceeds the maximum allowed input size of 1000 bytes. Use --http-max",
        ),
        (b"1f4\r\n" + b"a" * 500 + b"\r\n1f5\r\n", "size of 1001 bytes"),
    ],
)
@pytest.mark.parametrize("step", [None, 1])
def test_a_malformed_body_is_refused(content, message, step):
    with pytest.raises(HttpError) as caught:
        read(content, step)

    assert caught.value.status == 400
    assert message in str(caught.value)


def test_too_many_chunks_are_refused():
    with pytest.raises(HttpError, match="more than 65536 chunks"):
        read(b"1\r\na\r\n" * 65537, limit=100_000)


@given(st.binary(max_size=100), st.integers(1, 10))
def test_garbage_is_a_body_or_a_clean_refusal(content, step):
    try:
        reader, _ = read(content, step)
    except HttpError as error:
        status = error.status
    else:
        status = 400 if len(reader.view()) > len(content) else 0

    assert status in (0, 400)


@given(
    st.lists(st.binary(min_size=1, max_size=3), max_size=30),
    st.integers(1, 40),
    st.sampled_from([b"\r\n", b";a=b\r\n"]),
)
def test_a_fault_is_found_however_the_bytes_come(chunks, step, end):
    content = b"".join(b"%x%b%b\r\n" % (len(chunk), end, chunk) for chunk in chunks) + b"2\r\nabc\r\n"

    with pytest.raises(HttpError, match="its size"):
        read(content, step)
