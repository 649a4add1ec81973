"""What breaks RFC 9113, sent as raw bytes, and the error code that each must get."""

import pytest

from naiad_grpc.http2.frames import ErrorCode
from naiad_grpc.http2.header_blocks import encode_fields

from .conftest import (
    BLOCK,
    CONTINUATION,
    DATA,
    END,
    END_HEADERS,
    FIELDS,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH,
    RST,
    SETTINGS,
    WINDOW,
    WITH_PRIORITY,
    block,
    frame,
    headers,
    number,
    setting,
)

MOST = 2**31 - 1
OPEN = headers(1)
ENDED = headers(1, END_HEADERS | END)
CANCELLED = OPEN + frame(RST, 0, 1, number(8))
BEGUN = headers(1, 0, BLOCK[:9])
E = ErrorCode


def huffman(value):
    """A header block of one field, whose value has these bytes of Huffman code."""
    return headers(1, END_HEADERS, b"\x00\x85\xf2\xb2\x4a\x84\xff" + bytes((0x80 | len(value),)) + value)


OF_CONNECTION = {
    "a frame above the announced size": (OPEN + frame(DATA, 0, 1, bytes((1 << 20) + 1)), E.FRAME_SIZE_ERROR),
    "DATA on stream 0": (frame(DATA, 0, 0, b"x"), E.PROTOCOL_ERROR),
    "HEADERS on stream 0": (headers(0), E.PROTOCOL_ERROR),
    "PRIORITY on stream 0": (frame(PRIORITY, 0, 0, bytes(5)), E.PROTOCOL_ERROR),
    "RST_STREAM on stream 0": (frame(RST, 0, 0, number(8)), E.PROTOCOL_ERROR),
    "CONTINUATION on stream 0": (frame(CONTINUATION, 4, 0, BLOCK), E.PROTOCOL_ERROR),
    "SETTINGS on a stream": (frame(SETTINGS, 0, 1), E.PROTOCOL_ERROR),
    "PING on a stream": (frame(PING, 0, 1, bytes(8)), E.PROTOCOL_ERROR),
    "GOAWAY on a stream": (frame(GOAWAY, 0, 1, bytes(8)), E.PROTOCOL_ERROR),
    "DATA on an idle stream": (frame(DATA, END, 1, b"x"), E.PROTOCOL_ERROR),
    "RST_STREAM on an idle stream": (frame(RST, 0, 1, number(8)), E.PROTOCOL_ERROR),
    "WINDOW_UPDATE on an idle stream": (frame(WINDOW, 0, 1, number(1)), E.PROTOCOL_ERROR),
    "CONTINUATION without HEADERS": (frame(CONTINUATION, 4, 1, BLOCK), E.PROTOCOL_ERROR),
    "a stream with an even number": (headers(2), E.PROTOCOL_ERROR),
    "a stream with a smaller number": (headers(5, 5) + headers(3, 5), E.STREAM_CLOSED),
    "another frame within a header block": (headers(1, 0, BLOCK[:9]) + frame(PING, 0, 0, bytes(8)), E.PROTOCOL_ERROR),
    "a header block that goes on elsewhere": (
        headers(1, 0, BLOCK[:9]) + frame(CONTINUATION, 4, 3, BLOCK[9:]),
        E.PROTOCOL_ERROR,
    ),
    "PUSH_PROMISE": (frame(PUSH, 4, 1, number(2) + BLOCK), E.PROTOCOL_ERROR),
    "padding longer than DATA": (OPEN + frame(DATA, PADDED, 1, b"\x05abc"), E.PROTOCOL_ERROR),
    "DATA without the length of its padding": (OPEN + frame(DATA, PADDED, 1, b""), E.PROTOCOL_ERROR),
    "padding longer than HEADERS": (headers(1, END_HEADERS | PADDED, b"\xff" + BLOCK), E.PROTOCOL_ERROR),
    "HEADERS that end within their priority": (headers(1, END_HEADERS | WITH_PRIORITY, b"\0\0"), E.FRAME_SIZE_ERROR),
    "RST_STREAM of three bytes": (OPEN + frame(RST, 0, 1, bytes(3)), E.FRAME_SIZE_ERROR),
    "SETTINGS of five bytes": (frame(SETTINGS, 0, 0, bytes(5)), E.FRAME_SIZE_ERROR),
    "an acknowledgement with settings": (frame(SETTINGS, 1, 0, setting(4, 1)), E.FRAME_SIZE_ERROR),
    "PING of seven bytes": (frame(PING, 0, 0, bytes(7)), E.FRAME_SIZE_ERROR),
    "GOAWAY of seven bytes": (frame(GOAWAY, 0, 0, bytes(7)), E.FRAME_SIZE_ERROR),
    "WINDOW_UPDATE of three bytes": (frame(WINDOW, 0, 0, bytes(3)), E.FRAME_SIZE_ERROR),
    "ENABLE_PUSH of 2": (frame(SETTINGS, 0, 0, setting(2, 2)), E.PROTOCOL_ERROR),
    "a window above 2^31-1": (frame(SETTINGS, 0, 0, setting(4, MOST + 1)), E.FLOW_CONTROL_ERROR),
    "frames below 16384": (frame(SETTINGS, 0, 0, setting(5, 16383)), E.PROTOCOL_ERROR),
    "frames of 2^24": (frame(SETTINGS, 0, 0, setting(5, 2**24)), E.PROTOCOL_ERROR),
    "an empty WINDOW_UPDATE": (frame(WINDOW, 0, 0, number(0)), E.PROTOCOL_ERROR),
    "an overflow of the connection's window": (frame(WINDOW, 0, 0, number(MOST)), E.FLOW_CONTROL_ERROR),
    "an overflow by settings": (
        OPEN + frame(WINDOW, 0, 1, number(MOST - 65535)) + frame(SETTINGS, 0, 0, setting(4, 65536)),
        E.FLOW_CONTROL_ERROR,
    ),
    "an index of no header field": (headers(1, END_HEADERS, b"\xff\x80\x01"), E.COMPRESSION_ERROR),
    "a header field that ends early": (headers(1, END_HEADERS, b"\x00\x0aab"), E.COMPRESSION_ERROR),
    "a dynamic table above the announced size": (headers(1, END_HEADERS, b"\x21" + BLOCK), E.COMPRESSION_ERROR),
    "a change of the table after a field": (headers(1, END_HEADERS, BLOCK + b"\x20"), E.COMPRESSION_ERROR),
    "HEADERS on a closed stream": (ENDED + b"close" + headers(1), E.STREAM_CLOSED),
    "DATA on a closed stream": (ENDED + b"close" + frame(DATA, 0, 1, b"x"), E.STREAM_CLOSED),
    "DATA on a stream that the client has reset": (CANCELLED + frame(DATA, 0, 1, b"x"), E.STREAM_CLOSED),
    "HEADERS on a stream that the client has reset": (CANCELLED + headers(1), E.STREAM_CLOSED),
    "HEADERS above the announced size": (headers(1, END_HEADERS, bytes((1 << 20) + 1)), E.FRAME_SIZE_ERROR),
    "HEADERS longer than any header block": (headers(1, END_HEADERS, bytes(32769)), E.ENHANCE_YOUR_CALM),
    "a long frame of an unknown kind": (frame(99, 0, 1, bytes(32769)), E.ENHANCE_YOUR_CALM),
    "long DATA on an idle stream": (frame(DATA, 0, 1, bytes(16385)), E.PROTOCOL_ERROR),
    "long DATA within a header block": (headers(1, 0) + frame(DATA, 0, 1, bytes(16385)), E.PROTOCOL_ERROR),
    "CONTINUATION after the end of a header block": (OPEN + frame(CONTINUATION, 4, 1, BLOCK), E.PROTOCOL_ERROR),
    "an unknown frame within a header block": (BEGUN + frame(99, 0, 1), E.PROTOCOL_ERROR),
    "DATA within a header block": (BEGUN + frame(DATA, 0, 1, b"x"), E.PROTOCOL_ERROR),
    "HEADERS of another stream within a header block": (BEGUN + headers(3), E.PROTOCOL_ERROR),
    "the index 0": (headers(1, END_HEADERS, b"\x80"), E.COMPRESSION_ERROR),
    "Huffman padding of more than seven bits": (huffman(b"\x49\x50\x9f\xff"), E.COMPRESSION_ERROR),
    "Huffman padding of zeros": (huffman(b"\x49\x50\x90"), E.COMPRESSION_ERROR),
    "the end of a string within Huffman code": (huffman(b"\x49\x51\xff\xff\xff\xfa\x7f"), E.COMPRESSION_ERROR),
}

OF_STREAM = {
    "DATA on a half-closed stream": (ENDED + frame(DATA, END, 1, b"x"), E.STREAM_CLOSED),
    "HEADERS on a half-closed stream": (ENDED + headers(1, 5), E.STREAM_CLOSED),
    "trailers that do not end the stream": (
        OPEN + headers(1, END_HEADERS, encode_fields([(b"a", b"b")])),
        E.PROTOCOL_ERROR,
    ),
    "a pseudo-header in trailers": (OPEN + headers(1, 5, encode_fields([(b":path", b"/")])), E.PROTOCOL_ERROR),
    "an empty WINDOW_UPDATE": (OPEN + frame(WINDOW, 0, 1, number(0)), E.PROTOCOL_ERROR),
    "an overflow of the window": (OPEN + frame(WINDOW, 0, 1, number(MOST)), E.FLOW_CONTROL_ERROR),
    "HEADERS that depend on themselves": (headers(1, 0x25, number(1) + b"\0" + BLOCK), E.PROTOCOL_ERROR),
    "PRIORITY that depends on itself": (OPEN + frame(PRIORITY, 0, 1, number(1) + b"\0"), E.PROTOCOL_ERROR),
    "PRIORITY of four bytes": (OPEN + frame(PRIORITY, 0, 1, bytes(4)), E.FRAME_SIZE_ERROR),
    "an uppercase name": (headers(1, 5, block((b"Big", b"x"))), E.PROTOCOL_ERROR),
    "an empty name": (headers(1, 5, block((b"", b"x"))), E.PROTOCOL_ERROR),
    "an unknown pseudo-header": (headers(1, 5, encode_fields([(b":new", b"x"), *FIELDS])), E.PROTOCOL_ERROR),
    "a pseudo-header of responses": (headers(1, 5, encode_fields([(b":status", b"200"), *FIELDS])), E.PROTOCOL_ERROR),
    "a pseudo-header after others": (headers(1, 5, block((b":authority", b"x"))), E.PROTOCOL_ERROR),
    "a repeated pseudo-header": (headers(1, 5, encode_fields([FIELDS[0], *FIELDS])), E.PROTOCOL_ERROR),
    "no method": (headers(1, 5, encode_fields(list(FIELDS[1:]))), E.PROTOCOL_ERROR),
    "no scheme": (headers(1, 5, encode_fields([*FIELDS[:1], *FIELDS[2:]])), E.PROTOCOL_ERROR),
    "no path": (headers(1, 5, encode_fields([*FIELDS[:2], *FIELDS[3:]])), E.PROTOCOL_ERROR),
    "an empty path": (headers(1, 5, encode_fields([*FIELDS[:2], (b":path", b""), *FIELDS[3:]])), E.PROTOCOL_ERROR),
    "connection": (headers(1, 5, block((b"connection", b"close"))), E.PROTOCOL_ERROR),
    "transfer-encoding": (headers(1, 5, block((b"transfer-encoding", b"chunked"))), E.PROTOCOL_ERROR),
    "keep-alive": (headers(1, 5, block((b"keep-alive", b"timeout=5"))), E.PROTOCOL_ERROR),
    "proxy-connection": (headers(1, 5, block((b"proxy-connection", b"keep-alive"))), E.PROTOCOL_ERROR),
    "upgrade": (headers(1, 5, block((b"upgrade", b"h2c"))), E.PROTOCOL_ERROR),
    "te other than trailers": (headers(1, 5, block((b"te", b"gzip"))), E.PROTOCOL_ERROR),
    "a line break in a value": (headers(1, 5, block((b"a", b"b\r\nc"))), E.PROTOCOL_ERROR),
    "a content-length above the data": (
        headers(1, 4, block((b"content-length", b"3"))) + frame(DATA, END, 1, b"xx"),
        E.PROTOCOL_ERROR,
    ),
    "a content-length below the data": (
        headers(1, 4, block((b"content-length", b"1"))) + frame(DATA, 0, 1, b"xx"),
        E.PROTOCOL_ERROR,
    ),
    "a content-length without data": (headers(1, 5, block((b"content-length", b"1"))), E.PROTOCOL_ERROR),
    "a content-length that is no number": (headers(1, 5, block((b"content-length", b"x"))), E.PROTOCOL_ERROR),
    "two content-lengths": (
        headers(1, 5, block((b"content-length", b"1"), (b"content-length", b"2"))),
        E.PROTOCOL_ERROR,
    ),
}


@pytest.mark.parametrize(("sent", "code"), OF_CONNECTION.values(), ids=OF_CONNECTION.keys())
def test_an_error_of_the_connection_ends_it_with_its_code(peer, sent, code):
    before, close, after = sent.partition(b"close")
    peer.send(before)
    if close:
        peer.connection.respond(1, b"", [], 0, b"", 0.0)

    events = peer.send(after)

    assert peer.errors() == [(GOAWAY, 0, code)]
    assert peer.connection.ended
    assert not close or type(events[-1]).__name__ == "ConnectionEnded"


@pytest.mark.parametrize(("sent", "code"), OF_STREAM.values(), ids=OF_STREAM.keys())
def test_an_error_of_a_stream_resets_it_and_harms_no_other(peer, sent, code):
    peer.send(sent)

    following = peer.send(headers(7, END_HEADERS | END))

    assert peer.errors() == [(RST, 1, code)]
    assert [event.stream_id for event in following] == [7]
    assert list(peer.connection.streams) == [7]


@pytest.mark.parametrize(
    "sent", [b"\0" * 30, b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", PREFACE + frame(PING, 0, 0, bytes(8))]
)
def test_a_wrong_preface_is_a_protocol_error(make_peer, sent):
    peer = make_peer()

    peer.send(sent)

    assert peer.errors() == [(GOAWAY, 0, E.PROTOCOL_ERROR)]


def test_http_1_is_answered_in_http_1(make_peer):
    peer = make_peer()

    peer.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    (answer,) = peer.answers
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert peer.connection.ended


def test_more_data_than_the_window_of_a_stream_resets_it(make_peer):
    peer = make_peer(stream_window=100).greet()

    peer.send(headers(1), frame(DATA, 0, 1, bytes(40)), frame(DATA, 0, 1, bytes(61)))

    assert peer.errors() == [(RST, 1, E.FLOW_CONTROL_ERROR)]


def test_a_paused_stream_gets_no_more_window(peer):
    peer.send(headers(1))
    peer.connection.pause(1)
    for _ in range(64):
        peer.send(frame(DATA, 0, 1, bytes(16384)))

    stream_updates = [stream for kind, _, stream, _ in peer.answers if kind == WINDOW and stream]
    peer.connection.resume(1)
    peer.collect()

    assert stream_updates == []
    assert (WINDOW, 0, 1, number(1 << 20)) in peer.answers


def test_what_is_unknown_or_late_is_ignored(peer):
    peer.send(headers(1))
    peer.connection.reset(1, E.CANCEL, 0.0)
    peer.collect()
    peer.answers.clear()

    events = peer.send(
        frame(99, 255, 5, b"?"),
        frame(SETTINGS, 0, 0, setting(77, 5)),
        frame(DATA, 0, 1, b"late"),
        headers(1, 5, encode_fields([(b"late", b"trailers")])),
        frame(WINDOW, 0, 1, number(1)),
        frame(RST, 0, 1, number(8)),
        frame(PRIORITY, 0, 9, bytes(5)),
    )

    assert (events, peer.errors()) == ([], [])


def test_unknown_error_codes_are_taken_as_any_other(peer):
    peer.send(headers(1), headers(3))

    events = peer.send(frame(RST, 0, 1, number(0xFF)), frame(GOAWAY, 0, 0, number(0) + number(0xFF)))

    assert [(type(event).__name__, event.stream_id) for event in events] == [("StreamEnded", 1)]
    assert (peer.errors(), list(peer.connection.streams)) == ([], [3])


def test_the_last_of_two_values_of_a_setting_counts(peer):
    peer.send(frame(SETTINGS, 0, 0, setting(4, 100) + setting(4, 1)), ENDED)

    peer.connection.respond(1, b"", [b"abc"], 3, b"", 0.0)
    peer.collect()

    assert [payload for kind, _, _, payload in peer.answers if kind == DATA] == [b"a"]


def test_a_ping_and_settings_are_acknowledged(peer):
    peer.send(frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0, setting(4, 100)))

    assert peer.answers == [(PING, 1, 0, b"12345678"), (SETTINGS, 1, 0, b"")]


def test_priorities_padding_and_continuations_are_read(peer):
    events = peer.send(
        frame(HEADERS, END | WITH_PRIORITY | PADDED, 1, b"\x02" + number(3) + b"\0" + BLOCK[:20] + b"\0\0"),
        frame(CONTINUATION, 0, 1, BLOCK[20:30]),
        frame(CONTINUATION, 4, 1, BLOCK[30:]),
    )

    assert [(event.stream_id, event.head.path, event.ended) for event in events] == [(1, b"/a/b", True)]
