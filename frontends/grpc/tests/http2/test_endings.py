"""How a connection ends in good order: drain, age, idling and a GOAWAY of the client, on a clock of the test."""

from math import inf

import pytest

from naiad_grpc.http2.frames import MAX_WINDOW, ErrorCode
from naiad_grpc.http2.timers import Timeouts

from .conftest import DATA, END, END_HEADERS, GOAWAY, PING, RST, frame, headers, number

WHOLE = END_HEADERS | END


def last_streams(peer):
    """The last stream that each GOAWAY names."""
    return [int.from_bytes(payload[:4], "big") for kind, _, _, payload in peer.answers if kind == GOAWAY]


def drain(peer):
    """Drain, and the bytes with which the client answers the ping of that."""
    peer.connection.drain(peer.now)
    peer.collect()
    (payload,) = [payload for kind, _, _, payload in peer.answers if kind == PING]
    return frame(PING, 1, 0, payload)


def answer(peer, stream):
    peer.connection.respond(stream, b"", [], 0, b"", peer.now)
    peer.collect()


def tick(peer, now):
    """Act on the timers at that time."""
    peer.now = now
    events = peer.connection.tick(now)
    peer.collect()
    return events


def test_a_drain_announces_every_stream_first_and_the_real_last_one_after_a_ping(peer):
    peer.send(headers(1, WHOLE))

    acknowledged = drain(peer)
    before = last_streams(peer)
    peer.send(headers(3, WHOLE))  # the client did not know yet
    peer.send(acknowledged)

    assert before == [MAX_WINDOW]
    assert last_streams(peer) == [MAX_WINDOW, 3]
    assert sorted(peer.connection.streams) == [1, 3]
    assert not peer.connection.ended


def test_a_drain_does_not_wait_for_a_client_that_answers_no_ping(peer):
    peer.send(headers(1, WHOLE))
    drain(peer)

    due = peer.connection.next_timer()
    tick(peer, due)

    assert due == 1.0
    assert last_streams(peer) == [MAX_WINDOW, 1]


@pytest.mark.parametrize("by", ["answer", "reset of the client", "stall"])
def test_a_drained_connection_ends_with_its_last_stream(make_peer, by):
    peer = make_peer(timeouts=Timeouts(stall=30)).greet()
    peer.send(headers(1, WHOLE))
    if by == "stall":
        peer.connection.respond(1, b"", [bytes(100_000)], 100_000, b"", 0.0)
    peer.send(drain(peer))
    before = peer.connection.ended

    if by == "answer":
        answer(peer, 1)
    elif by == "stall":
        tick(peer, 31.0)
    else:
        peer.send(frame(RST, 0, 1, number(8)))

    assert (before, peer.connection.ended) == (False, True)


def test_a_drained_connection_refuses_further_streams_and_serves_those_it_has(peer):
    peer.send(headers(1))
    peer.send(drain(peer))

    events = peer.send(headers(3, WHOLE), frame(DATA, END, 1, b"x"))

    assert peer.errors()[:1] == [(RST, 3, ErrorCode.REFUSED_STREAM)]
    assert [event.stream_id for event in events] == [1]


def test_a_drain_of_an_idle_connection_ends_it_after_the_ping(peer):
    peer.send(drain(peer))

    assert last_streams(peer) == [MAX_WINDOW, 0]
    assert peer.connection.ended


def test_a_connection_that_drains_needs_no_timer_while_calls_run(peer):
    peer.send(headers(1))
    peer.send(drain(peer))

    assert peer.connection.next_timer() == inf


def test_a_client_that_says_goaway_has_its_calls_answered(peer):
    peer.send(headers(1, WHOLE), frame(GOAWAY, 0, 0, bytes(8)))
    before = peer.connection.ended
    answer(peer, 1)

    assert (before, peer.connection.ended) == (False, True)


def test_an_old_connection_is_drained(make_peer):
    peer = make_peer(timeouts=Timeouts(age=100)).greet()
    peer.send(headers(1))

    early, due = tick(peer, 99.0), peer.connection.next_timer()
    before = last_streams(peer)
    tick(peer, due)

    assert (early, before, due) == ([], [], 100.0)
    assert last_streams(peer) == [MAX_WINDOW]
    assert not peer.connection.ended


def test_an_old_connection_without_calls_ends_at_once(make_peer):
    peer = make_peer(timeouts=Timeouts(age=100)).greet()

    tick(peer, 100.0)

    assert last_streams(peer) == [0]
    assert peer.connection.ended


def test_calls_of_an_old_connection_have_a_grace(make_peer):
    peer = make_peer(timeouts=Timeouts(age=100, age_grace=50)).greet()
    peer.send(headers(1))
    tick(peer, 100.0)
    tick(peer, 149.0)
    before = peer.connection.ended

    tick(peer, 150.0)

    assert (before, peer.connection.ended) == (False, True)
    assert b"max_age_grace" in peer.answers[-1][3]


def test_an_idle_connection_ends_and_one_with_a_call_does_not(make_peer):
    peer = make_peer(timeouts=Timeouts(idle=60)).greet()
    peer.send(headers(1, WHOLE))
    tick(peer, 1000.0)
    busy = peer.connection.ended
    answer(peer, 1)
    tick(peer, 1059.0)
    early = peer.connection.ended

    tick(peer, 1060.0)

    assert (busy, early, peer.connection.ended) == (False, False, True)


def test_a_client_that_says_nothing_at_first_is_disconnected(make_peer):
    peer = make_peer(timeouts=Timeouts(handshake=20))

    tick(peer, 19.0)
    early = peer.connection.ended
    due = peer.connection.next_timer()
    tick(peer, 20.0)

    assert (early, due) == (False, 20.0)
    assert peer.errors() == [(GOAWAY, 0, ErrorCode.SETTINGS_TIMEOUT)]


def test_an_end_names_the_last_stream_and_drops_what_is_queued(peer):
    peer.send(headers(1, WHOLE))
    peer.connection.respond(1, b"", [bytes(100_000)], 100_000, b"", 0.0)
    peer.collect()

    events = peer.connection.end(5.0)
    again = peer.connection.end(6.0)
    peer.collect()

    assert [type(event).__name__ for event in events] == ["ConnectionEnded"]
    assert (again, last_streams(peer), peer.connection.streams) == ([], [1], {})
    assert peer.send(headers(3)) == []
