"""The framing of requests, however their bytes arrive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad_http.heads import HeadReader
from naiad_http.incoming import Message, Scratch
from naiad_http.reader import RequestReader, Signal
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_http.statuses import HttpError

INFER = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\n"
HEADS = HeadReader(RequestHeadReader("", Restrictions()))


def make_reader(limit=100_000):
    return RequestReader(HEADS, limit, Scratch())


def feed(reader, content, step=None):
    """The events of these bytes, put into the reader in pieces of at most `step` bytes, as an event loop does."""
    events = []
    offset = 0
    while offset < len(content):
        buffer = reader.buffer()
        count = min(len(buffer), len(content) - offset, step or len(content))
        buffer[:count] = content[offset : offset + count]
        offset += count
        event = reader.received(count)
        while event is not None:
            events.append(event)
            event = reader.next_event()
        reader._scratch.view[:] = b"\xaa" * len(reader._scratch.view)  # another connection uses it next
    return events


def parts(events):
    return [(event.head.path, bytes(event.front), bytes(event.rest)) for event in events]


def infer(front, rest=b"", *headers):
    lines = b"".join(header + b"\r\n" for header in headers)
    length = b"Inference-Header-Content-Length: %d\r\n" % len(front)
    return INFER + lines + length + b"Content-Length: %d\r\n\r\n" % (len(front) + len(rest)) + front + rest


STEPS = pytest.mark.parametrize("step", [None, 1, 2, 3, 50, 1000])


@STEPS
def test_an_infer_body_is_split_where_its_json_ends(step):
    events = feed(make_reader(), infer(b"{json}", b"tensor"), step)

    assert parts(events) == [(b"/v2/models/m/infer", b"{json}", b"tensor")]


@STEPS
def test_pipelined_requests_come_one_by_one_in_order(step):
    content = (
        infer(b"a", b"1")
        + b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n"
        + infer(b"b", b"2" * 3000)
        + b"\r\n\r\n"
        + infer(b"c")
    )

    events = feed(make_reader(), content, step)

    assert parts(events) == [
        (b"/v2/models/m/infer", b"a", b"1"),
        (b"/v2", b"", b""),
        (b"/v2/models/m/infer", b"b", b"2" * 3000),
        (b"/v2/models/m/infer", b"c", b""),
    ]


@STEPS
def test_a_chunked_body_is_split_too(step):
    head = INFER + b"Inference-Header-Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    content = head + b"3\r\n{js\r\n5\r\n}tens\r\n0\r\n\r\n" + infer(b"next")

    events = feed(make_reader(), content, step)

    assert parts(events) == [(b"/v2/models/m/infer", b"{js}", b"tens"), (b"/v2/models/m/infer", b"next", b"")]


def test_without_a_header_length_the_whole_body_is_the_front():
    (event,) = feed(make_reader(), INFER + b"Content-Length: 3\r\n\r\nabc")

    assert (bytes(event.front), bytes(event.rest)) == (b"abc", b"")


@pytest.mark.parametrize("length", [b"-3", b"100"])
def test_a_header_length_outside_the_body_splits_nothing(length):
    lines = b"Inference-Header-Content-Length: " + length + b"\r\nContent-Length: 3\r\n\r\nabc"

    (event,) = feed(make_reader(), INFER + lines)

    assert (bytes(event.front), bytes(event.rest)) == (b"abc", b"")


@pytest.mark.parametrize("front", [b"{}", b"{  }", b"{     }"])
@pytest.mark.parametrize("size", [8, 80_000])
def test_tensors_begin_where_frameworks_can_read_them(front, size):
    (event,) = feed(make_reader(), infer(front, bytes(size)))

    assert np.frombuffer(event.rest, np.float64).flags.aligned


def test_tensors_of_a_chunked_body_are_not_copied_and_begin_where_frameworks_can_read_them():
    body = b"{}" + bytes(80_000)
    head = INFER + b"Inference-Header-Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"

    (event,) = feed(make_reader(), head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))

    array = np.frombuffer(event.rest, np.float64)
    assert (event.front, len(array), array.flags.aligned) == (b"{}", 10_000, True)
    assert isinstance(event.rest.obj, bytearray)


def test_pipelined_requests_are_consumed_where_they_lie():
    reader = make_reader()
    content = infer(b"a") * 10
    reader.buffer()[: len(content)] = content
    reader.keep(len(content))
    kept = reader.kept

    reader.next_event()

    assert reader.kept is kept
    assert len(kept) == len(content) * 9 // 10


@STEPS
def test_a_few_empty_lines_in_front_of_a_request_are_skipped(step):
    events = feed(make_reader(), (b"\r\n" * 16 + infer(b"a")) * 3, step)

    assert len(events) == 3


@STEPS
def test_empty_lines_without_a_request_are_refused(step):
    with pytest.raises(HttpError, match="more than 32 bytes of empty lines stand in front of the request line"):
        feed(make_reader(), infer(b"a") + b"\r\n" * 17, step)


def test_a_large_body_is_received_into_its_own_memory():
    reader = make_reader()
    head = INFER + b"Inference-Header-Content-Length: 2\r\nContent-Length: 50002\r\n\r\n{}"
    feed(reader, head)

    memory = reader.buffer()
    memory[:] = b"x" * 50_000
    event = reader.received(50_000)

    assert isinstance(event, Message)
    assert np.shares_memory(np.frombuffer(event.rest, np.uint8), np.frombuffer(memory, np.uint8))


@STEPS
def test_a_client_that_waits_for_our_word_is_noticed(step):
    reader = make_reader()
    head = INFER + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"

    assert feed(reader, head, step) == [Signal.CONTINUE]
    assert parts(feed(reader, b"{}", step)) == [(b"/v2/models/m/infer", b"{}", b"")]


def test_a_client_that_does_not_wait_for_our_word_needs_none():
    events = feed(make_reader(), INFER + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}")

    assert parts(events) == [(b"/v2/models/m/infer", b"{}", b"")]


def test_bytes_that_come_while_a_request_is_in_flight_are_kept():
    reader = make_reader()
    content = infer(b"a")
    reader.buffer()[: len(content)] = content

    reader.keep(len(content))

    assert parts([reader.next_event()]) == [(b"/v2/models/m/infer", b"a", b"")]


@pytest.mark.parametrize(
    "content", [INFER + b"Content-Length: 1001\r\n\r\n", INFER + b"Content-Length: 1001\r\n\r\n" + bytes(1001)]
)
def test_a_body_beyond_the_limit_is_refused_before_it_is_read(content):
    with pytest.raises(HttpError, match=r"size of 1001 bytes"):
        feed(make_reader(limit=1000), content)


def test_a_body_that_there_is_no_memory_for_is_refused_for_now():
    with pytest.raises(HttpError, match="there is no memory for a body of") as caught:
        feed(make_reader(limit=2**62), INFER + b"Content-Length: %d\r\n\r\n" % 2**60)

    assert (caught.value.status, caught.value.headers) == (503, (("Retry-After", "1"),))


@pytest.mark.parametrize("step", [None, 1000])
@pytest.mark.parametrize("value", [b"a" * 200_000, b"a" * 65_600 + b"\r\n\r\n"], ids=["endless", "just too long"])
def test_a_head_that_is_too_long_is_refused_however_it_comes(value, step):
    with pytest.raises(HttpError) as caught:
        feed(make_reader(), b"GET / HTTP/1.1\r\nA: " + value, step)

    assert caught.value.status == 431


def test_after_a_refusal_everything_goes_by_unread():
    reader = make_reader()
    reader.discard()

    assert feed(reader, infer(b"a") * 10) == []
    assert reader.missing == ""


@pytest.mark.parametrize(
    ("content", "missing"),
    [
        (b"", ""),
        (infer(b"a"), ""),
        (b"POST /v2", "the request ends within its headers"),
        (INFER + b"Content-Length: 9\r\n\r\nabc", "the body ends after 3 of the 9 bytes that Content-Length says"),
        (INFER + b"Transfer-Encoding: chunked\r\n\r\n3\r\nab", "the chunked body ends without its last chunk"),
    ],
)
def test_a_torso_says_what_is_missing(content, missing):
    reader = make_reader()

    feed(reader, content)

    assert reader.missing == missing


REQUESTS = st.lists(
    st.tuples(st.binary(max_size=30), st.binary(max_size=100), st.booleans(), st.booleans()), min_size=1, max_size=4
)


@given(REQUESTS, st.integers(1, 400))
def test_any_requests_in_any_pieces_come_out_whole(requests, step):
    content = b""
    for front, rest, chunked, newline in requests:
        if chunked:
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (front, rest) if part) + b"0\r\n\r\n"
            length = b"Inference-Header-Content-Length: %d\r\n" % len(front)
            content += INFER + length + b"Transfer-Encoding: chunked\r\n\r\n" + body
        else:
            content += infer(front, rest)
        content += b"\r\n" if newline else b""

    events = feed(make_reader(), content, step)

    assert parts(events) == [(b"/v2/models/m/infer", front, rest) for front, rest, _, _ in requests]


def test_a_large_body_for_inference_is_received_in_the_memory_of_its_model():
    memory, reserved = bytearray(100_016), []

    def reserve(model: str, size: int) -> memoryview:
        reserved.append((model, size))
        return memoryview(memory)[:size]

    reader = RequestReader(HEADS, 1 << 30, Scratch(), reserve=reserve)
    head = INFER + b"Inference-Header-Content-Length: 2\r\nContent-Length: 100002\r\n\r\n"

    events = feed(reader, head + b"{}" + bytes(range(1, 251)) * 400)

    assert reserved == [("m", 100_016)]
    assert bytes(memory[14:18]) == b"{}\x01\x02"
    assert events[-1].rest.obj is memory


@pytest.mark.parametrize("length", [b"", b"Content-Encoding: gzip\r\nInference-Header-Content-Length: 2\r\n"])
def test_no_body_memory_is_reserved_for_what_is_not_read_in_place(length: bytes):
    reserved = []
    reader = RequestReader(HEADS, 1 << 30, Scratch(), reserve=lambda model, size: reserved.append(model))

    feed(reader, INFER + length + b"Content-Length: 100002\r\n\r\n" + bytes(100))

    assert reserved == []
