"""Pings that the server sends, by gRPC's rules: when, how often, and what an answer that does not come leads to."""

import pytest

from naiad_grpc.http2.timers import Timeouts

from .conftest import END, END_HEADERS, GOAWAY, PING, frame, headers


def pings(peer, until, by=1.0):
    """When the server pings a client that says nothing, up to that time."""
    moments = []
    while peer.now < until and not peer.connection.ended:
        peer.now += by
        peer.answers.clear()
        peer.connection.tick(peer.now)
        peer.collect()
        if any(kind == PING for kind, *_ in peer.answers):
            moments.append(peer.now)
    return moments


def answered_pings(peer, until):
    """The same with a client that answers each ping."""
    moments = []
    while peer.now < until:
        moments += pings(peer, peer.now + 1)
        if any(kind == PING for kind, *_ in peer.answers):
            peer.send(frame(PING, 1, 0, b"are you?"))
    return moments


def test_a_silent_client_with_a_call_is_pinged_and_dropped_without_an_answer(make_peer):
    peer = make_peer(timeouts=Timeouts(keepalive=10, keepalive_timeout=5)).greet()
    peer.send(headers(1))

    moments = pings(peer, 60)

    assert (moments, peer.now) == ([10.0], 15.0)
    assert peer.connection.ended
    ((payload,),) = [[payload] for kind, _, _, payload in peer.answers if kind == GOAWAY]
    assert payload.endswith(b"ping_timeout")


def test_anything_that_the_client_says_answers_a_ping(make_peer):
    peer = make_peer(timeouts=Timeouts(keepalive=10, keepalive_timeout=5)).greet()
    peer.send(headers(1))
    pings(peer, 12)

    peer.send(headers(3))
    pings(peer, 21)

    assert not peer.connection.ended


@pytest.mark.parametrize(("permitted", "expected"), [(False, []), (True, [10.0])])
def test_a_connection_without_calls_is_pinged_only_where_that_is_permitted(make_peer, permitted, expected):
    peer = make_peer(timeouts=Timeouts(keepalive=10, keepalive_without_calls=permitted)).greet()

    assert pings(peer, 19) == expected


@pytest.mark.parametrize(("most", "count"), [(2, 2), (0, 9)])
def test_pings_without_data_in_between_are_counted(make_peer, most, count):
    peer = make_peer(timeouts=Timeouts(keepalive=10, most_pings=most)).greet()
    peer.send(headers(1))

    assert len(answered_pings(peer, 99)) == count


@pytest.mark.parametrize("how", ["whole response", "stream"])
def test_an_answer_lets_pings_start_anew(make_peer, how):
    peer = make_peer(timeouts=Timeouts(keepalive=10, most_pings=2)).greet()
    peer.send(headers(1), headers(3, END_HEADERS | END))
    before = len(answered_pings(peer, 60))

    if how == "stream":
        peer.connection.send_head(1, b"", peer.now)
    else:
        peer.connection.respond(3, b"", [], 0, b"", peer.now)
    after = len(answered_pings(peer, 120))

    assert (before, after) == (2, 2)
