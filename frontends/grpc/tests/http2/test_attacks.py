"""Attacks on HTTP/2 servers: each ends the connection, or costs the server nothing."""

import tracemalloc

import pytest

from naiad_grpc.http2.budgets import RATES
from naiad_grpc.http2.endpoint import MOST_UNREAD_FRAMES
from naiad_grpc.http2.frames import MAX_WINDOW, ErrorCode
from naiad_grpc.http2.header_blocks import MOST_BLOCK_BYTES, MOST_CONTINUATIONS, encode_fields
from naiad_grpc.http2.peer_settings import MOST_SETTINGS
from naiad_grpc.http2.timers import Timeouts

from .conftest import (
    BLOCK,
    CONTINUATION,
    DATA,
    END,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    RST,
    SETTINGS,
    WINDOW,
    frame,
    headers,
    number,
    setting,
)

ACK = 1
CALM = [(GOAWAY, 0, ErrorCode.ENHANCE_YOUR_CALM)]


def flood(peer, make, most=60_000):
    """Send `make(n)` until the connection ends; how many it took."""
    for count in range(most):
        peer.send(make(count))
        if peer.connection.ended:
            return count
    return most


def reset_at_once(count):
    return headers(2 * count + 1) + frame(RST, 0, 2 * count + 1, number(8))


def broken_update(count):
    """A stream whose client provokes a reset by the server (CVE-2025-8671)."""
    return headers(2 * count + 1, END_HEADERS | END) + frame(WINDOW, 0, 2 * count + 1, number(0))


def reset_again(count):
    return (headers(1) if count == 0 else b"") + frame(RST, 0, 1, number(8))


def provoke(violation):
    """Streams, each half-closed, whose client provokes a reset by this frame, which is for stream 1."""
    kind, flags, content = violation[3], violation[4], violation[9:]

    def make(count):
        stream = 2 * count + 1
        content_ = number(stream) + content[4:] if kind == PRIORITY else content
        return headers(stream, END_HEADERS | END) + frame(kind, flags, stream, content_)

    return make


@pytest.mark.parametrize(
    "make",
    [
        reset_at_once,
        broken_update,
        lambda _: frame(PING, 0, 0, bytes(8)),
        lambda _: frame(SETTINGS, 0, 0, setting(4, 65535)),
        lambda _: frame(PRIORITY, 0, 1, bytes(5)),
        lambda _: frame(WINDOW, 0, 0, number(1)),
        lambda _: frame(99, 0, 0),
        lambda _: frame(PING, ACK, 0, bytes(8)),
        lambda _: frame(SETTINGS, ACK, 0),
        reset_again,
        provoke(frame(DATA, END, 1, b"x")),
        provoke(headers(1, END_HEADERS | END)),
        provoke(frame(WINDOW, 0, 1, number(MAX_WINDOW))),
        provoke(frame(PRIORITY, 0, 1, number(1) + b"\0")),
    ],
    ids=[
        *("rapid reset", "made you reset", "pings", "settings", "priorities", "window updates", "unknown frames"),
        *("acknowledged pings", "acknowledged settings"),
        *("resets of closed streams", "data on half-closed streams", "headers on half-closed streams"),
        *("window overflows", "self-dependencies"),
    ],
)
def test_a_flood_of_frames_ends_the_connection(make_peer, make):
    peer = make_peer(timeouts=Timeouts(most_ping_strikes=0)).greet()

    assert flood(peer, make) < 60_000
    assert peer.errors()[-1:] == CALM
    assert not peer.connection.streams


@pytest.mark.parametrize("empty", [frame(DATA, 0, 1), frame(DATA, PADDED, 1, b"\x03" + bytes(3))])
def test_a_flood_of_empty_data_ends_the_connection(peer, empty):
    peer.send(headers(1))

    assert flood(peer, lambda _: empty) <= RATES[DATA].burst
    assert peer.errors() == CALM


def test_more_settings_than_a_client_has_in_one_frame_end_the_connection(peer):
    peer.send(frame(SETTINGS, 0, 0, setting(4, 1) * MOST_SETTINGS))
    assert peer.errors() == []

    peer.send(frame(SETTINGS, 0, 0, setting(4, 1) * (MOST_SETTINGS + 1)))

    assert peer.errors() == CALM


def test_window_updates_that_come_at_once_are_acted_on_at_once(make_peer):
    peer = make_peer().greet(setting(4, 1 << 20))
    peer.send(headers(1, END_HEADERS | END))
    peer.connection.respond(1, b"", [bytes(100_000)], 100_000, b"", 0.0)
    peer.collect()
    peer.answers.clear()

    peer.send(frame(WINDOW, 0, 0, number(1)) * 5000)

    assert [(kind, len(payload)) for kind, _, _, payload in peer.answers] == [(DATA, 5000)]


def test_an_honest_client_may_cancel_for_hours(peer):
    for count in range(3000):
        peer.now += 0.011
        peer.send(reset_at_once(count))

    assert peer.errors() == []


def test_answered_calls_earn_cancelled_ones(peer):
    for count in range(2600):
        peer.send(headers(4 * count + 1, END_HEADERS | END))
        peer.connection.respond(4 * count + 1, b"", [], 0, b"", 0.0)
        peer.send(headers(4 * count + 3), frame(RST, 0, 4 * count + 3, number(8)))

    assert peer.errors() == []


@pytest.mark.parametrize("part", [b"", bytes(16384)])
def test_a_flood_of_continuations_ends_the_connection(peer, part):
    peer.send(frame(HEADERS, 0, 1, BLOCK))

    count = flood(peer, lambda _: frame(CONTINUATION, 0, 1, part))

    assert count <= MOST_CONTINUATIONS
    assert count * len(part) <= MOST_BLOCK_BYTES
    assert peer.errors() == CALM


def test_a_flood_of_goaway_ends_a_connection_with_calls(peer):
    peer.send(headers(1))

    assert flood(peer, lambda _: frame(GOAWAY, 0, 0, bytes(8) + b"x" * 100)) < 60_000
    assert peer.errors()[-1:] == CALM


@pytest.mark.parametrize("begun", [frame(HEADERS, 0, 1, BLOCK), frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1)])
def test_a_header_block_that_does_not_end_ends_the_connection(make_peer, begun):
    peer = make_peer(timeouts=Timeouts(header_block=20)).greet()
    peer.now = 5.0
    peer.send(begun)
    peer.now = 24.0
    peer.send(frame(CONTINUATION, 0, 1, b""))
    peer.connection.tick(24.0)
    early = peer.connection.ended

    due = peer.connection.next_timer()
    peer.connection.tick(due)
    peer.collect()

    assert (early, due, peer.connection.ended) == (False, 25.0, True)
    assert peer.errors() == CALM


def test_a_header_block_that_ends_in_time_harms_nothing(make_peer):
    peer = make_peer(timeouts=Timeouts(header_block=20)).greet()
    peer.send(frame(HEADERS, END, 1, BLOCK))
    peer.now = 19.0

    events = peer.send(frame(CONTINUATION, END_HEADERS, 1))
    peer.connection.tick(1000.0)

    assert [event.stream_id for event in events] == [1]
    assert not peer.connection.ended


@pytest.mark.parametrize("acknowledged", [b"", frame(SETTINGS, ACK, 0)], ids=["unacknowledged", "acknowledged"])
def test_a_header_list_that_grows_when_decoded_ends_the_connection_before_it_is_built(make_peer, acknowledged):
    peer = make_peer()
    peer.send(PREFACE + frame(SETTINGS, 0, 0) + acknowledged)
    peer.answers.clear()
    large = b"\x40\x01a\x7f" + bytes((0xA1, 0x1E)) + b"x" * 4000  # put into the dynamic table once
    bomb = headers(1, END_HEADERS, large + b"\xbe" * 8000)  # and used 8,000 times

    tracemalloc.start()
    try:
        peer.send(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peer.errors() == CALM
    assert peak < 1 << 19


def test_too_many_streams_are_refused_one_by_one(make_peer):
    peer = make_peer(streams=3).greet()

    peer.send(*(headers(2 * count + 1) for count in range(5)))

    assert peer.errors() == [(RST, 7, ErrorCode.REFUSED_STREAM), (RST, 9, ErrorCode.REFUSED_STREAM)]


def test_frames_for_a_client_that_does_not_read_are_bounded(make_peer):
    peer = make_peer(timeouts=Timeouts(most_ping_strikes=0)).greet()
    peer.connection.hold()

    for _ in range(MOST_UNREAD_FRAMES + 1000):
        peer.now += 1
        peer.connection.receive(frame(PING, 0, 0, bytes(8)), peer.now)

    assert peer.connection.ended
    assert len(peer.connection.outbox.frames) < 10


def test_answers_to_a_client_that_does_not_read_raise_nothing(peer):
    peer.connection.hold()

    for count in range(3 * MOST_UNREAD_FRAMES):
        if not peer.connection.ended:
            peer.connection.receive(headers(2 * count + 1), 0.0)
            peer.connection.send_trailers(2 * count + 1, b"", 0.0)  # which resets what the client still sends

    assert len(peer.connection.streams) == 0


def test_an_answer_that_cannot_be_sent_for_too_long_is_reset(make_peer):
    peer = make_peer(timeouts=Timeouts(stall=30)).greet(setting(4, 0))
    peer.send(headers(1, END_HEADERS | END))
    sent = peer.connection.respond(1, encode_fields([]), [b"x" * 100], 100, b"", 0.0)
    early = peer.connection.tick(29.0)

    late = peer.connection.tick(30.0)
    peer.collect()

    assert (sent, early, [event.stream_id for event in late]) == (False, [], [1])
    assert peer.errors() == [(RST, 1, ErrorCode.CANCEL)]


def test_a_window_of_one_byte_gets_a_byte_and_keeps_no_other_stream_waiting(peer):
    peer.send(frame(SETTINGS, 0, 0, setting(4, 1)), headers(1, 5), frame(SETTINGS, 0, 0, setting(4, 65535)))
    peer.send(frame(SETTINGS, 0, 0, setting(4, 1)), headers(3, 5), frame(WINDOW, 0, 3, number(1000)))
    peer.answers.clear()
    peer.connection.respond(1, b"", [b"abc"], 3, b"", 0.0)
    peer.connection.respond(3, b"", [b"defg"], 4, b"", 0.0)
    peer.collect()

    data = [(stream, payload) for kind, _, stream, payload in peer.answers if kind == DATA]

    assert data == [(1, b"a"), (3, b"defg")]


def test_pings_more_often_than_allowed_are_strikes(make_peer):
    peer = make_peer(timeouts=Timeouts(least_ping_interval=10, most_ping_strikes=2)).greet()
    peer.send(headers(1))

    for _ in range(4):
        peer.send(frame(PING, 0, 0, bytes(8)))

    assert peer.errors() == CALM


def test_pings_between_answers_are_no_strikes(make_peer):
    peer = make_peer(timeouts=Timeouts(least_ping_interval=10, most_ping_strikes=2)).greet()
    peer.send(headers(1))
    peer.connection.send_head(1, b"", 0.0)

    for _ in range(20):
        peer.now += 1
        peer.connection.send_data(1, [b"x"], peer.now)
        peer.send(frame(PING, 0, 0, bytes(8)))

    assert peer.errors() == []


def test_pings_between_data_that_waited_for_a_window_are_no_strikes(make_peer):
    peer = make_peer(timeouts=Timeouts(least_ping_interval=10, most_ping_strikes=2)).greet(setting(4, 0))
    peer.send(headers(1))
    peer.connection.send_head(1, b"", 0.0)
    peer.connection.send_data(1, [bytes(100)], 0.0)

    for _ in range(20):
        peer.now += 1
        peer.send(frame(WINDOW, 0, 1, number(1)), frame(PING, 0, 0, bytes(8)))

    assert peer.errors() == []
