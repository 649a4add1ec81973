"""HPACK: dynamic tables of clients, the cache of heads behind them, and what our blocks say of ours."""

import hpack
import pytest

from naiad_grpc.http2.frames import ErrorCode
from naiad_grpc.http2.header_blocks import HeadCache, encode_fields

from .conftest import BLOCK, END, END_HEADERS, FIELDS, GOAWAY, HEADERS, PREFACE, SETTINGS, frame, headers, setting
from .conftest import Peer as AnyPeer

WHOLE = END_HEADERS | END


def counting_peer():
    """A peer that has not acknowledged our settings, and how often its cache has interpreted fields."""
    calls = []
    peer = AnyPeer()
    cache = HeadCache(lambda fields: calls.append(fields) or fields)
    peer.connection._blocks._cache = cache
    peer.send(PREFACE + frame(SETTINGS, 0, 0))
    peer.answers.clear()
    return peer, calls


def paths(events):
    return [event.head.path for event in events]


def test_a_client_may_use_its_table_until_it_knows_that_it_has_none():
    peer, _ = counting_peer()
    encoder = hpack.Encoder()
    before = [encoder.encode(FIELDS), encoder.encode(FIELDS)]  # the second one is made of indexes
    encoder.header_table_size = 0
    after = [encoder.encode(FIELDS), encoder.encode(FIELDS)]

    events = peer.send(headers(1, WHOLE, before[0]), headers(3, WHOLE, before[1]))
    events += peer.send(frame(SETTINGS, 1, 0), headers(5, WHOLE, after[0]), headers(7, WHOLE, after[1]))

    assert paths(events) == [b"/a/b"] * 4
    assert peer.errors() == []


def test_a_head_that_has_come_before_is_not_interpreted_again():
    peer, calls = counting_peer()
    peer.send(frame(SETTINGS, 1, 0), headers(1, WHOLE, b"\x20" + BLOCK))

    peer.send(*(headers(stream, WHOLE) for stream in range(3, 21, 2)))

    assert len(calls) == 2


def test_blocks_that_depend_on_a_table_are_not_cached():
    peer, _ = counting_peer()
    first, second = hpack.Encoder(), hpack.Encoder()
    other = [(name, b"/other" if name == b":path" else value) for name, value in FIELDS]
    second.encode(other)
    same = first.encode(FIELDS) and first.encode(FIELDS)
    elsewhere, _ = counting_peer()
    elsewhere.send(headers(1, WHOLE, hpack.Encoder().encode(other)))

    events = peer.send(headers(1, WHOLE, hpack.Encoder().encode(FIELDS)), headers(3, WHOLE, same))
    others = elsewhere.send(headers(3, WHOLE, same))

    assert paths(events + others) == [b"/a/b", b"/a/b", b"/other"]


@pytest.mark.parametrize("block", [b"\x20\x3f\xe1\x1f" + BLOCK, b"\x20" + BLOCK[:1] + b"\xff"])
def test_a_table_of_another_size_than_announced_is_an_error(block):
    peer, _ = counting_peer()

    peer.send(frame(SETTINGS, 1, 0), headers(1, WHOLE, block))

    assert peer.errors() == [(GOAWAY, 0, ErrorCode.COMPRESSION_ERROR)]


def test_trailers_change_the_table_too():
    peer, _ = counting_peer()
    encoder = hpack.Encoder()
    blocks = [encoder.encode(FIELDS), encoder.encode([(b"x-late", b"1")]), encoder.encode([*FIELDS, (b"x-late", b"1")])]

    events = peer.send(headers(1, END_HEADERS, blocks[0]), headers(1, WHOLE, blocks[1]), headers(3, WHOLE, blocks[2]))

    assert events[-1].head.fields[-1] == (b"x-late", b"1")


def test_a_block_for_a_stream_that_is_reset_changes_the_table_too():
    peer, _ = counting_peer()
    encoder = hpack.Encoder()
    blocks = [encoder.encode(FIELDS), encoder.encode([(b"x-late", b"1")]), encoder.encode([*FIELDS, (b"x-late", b"1")])]
    peer.send(headers(1, END_HEADERS, blocks[0]))
    peer.connection.reset(1, ErrorCode.CANCEL, 0.0)

    events = peer.send(headers(1, WHOLE, blocks[1]), headers(3, WHOLE, blocks[2]))

    assert events[-1].head.fields[-1] == (b"x-late", b"1")


@pytest.mark.parametrize("how", ["respond", "send_head", "send_trailers"])
def test_the_first_block_for_a_client_with_a_smaller_table_says_that_ours_is_empty(peer, how):
    head = encode_fields([(b":status", b"200")])
    peer.send(frame(SETTINGS, 0, 0, setting(1, 100) + setting(1, 4096)), headers(1), headers(3))
    peer.answers.clear()

    if how == "respond":
        peer.connection.respond(1, head, [], 0, head, 0.0)
    else:
        getattr(peer.connection, how)(1, head, 0.0)
    peer.connection.send_head(3, head, 0.0)
    peer.collect()

    blocks = [payload for kind, _, _, payload in peer.answers if kind == HEADERS]
    assert blocks == [b"\x20" + head, *[head] * (len(blocks) - 1)]


def test_trailers_that_waited_for_a_window_say_so_too(peer):
    peer.send(frame(SETTINGS, 0, 0, setting(4, 0)), headers(1, WHOLE))
    peer.connection.respond(1, BLOCK, [b"x"], 1, BLOCK, 0.0)
    peer.send(frame(SETTINGS, 0, 0, setting(1, 0) + setting(4, 100)))

    assert [payload for kind, _, _, payload in peer.answers if kind == HEADERS] == [BLOCK, b"\x20" + BLOCK]


@pytest.mark.parametrize("value", [4096, 65536])
def test_a_table_as_large_as_by_default_needs_no_word(peer, value):
    peer.send(frame(SETTINGS, 0, 0, setting(1, value)), headers(1))
    peer.answers.clear()

    peer.connection.send_head(1, BLOCK, 0.0)
    peer.collect()

    assert [payload for kind, _, _, payload in peer.answers if kind == HEADERS] == [BLOCK]


def test_the_cache_of_heads_is_bounded(make_peer):
    peer = make_peer()
    peer.send(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0), headers(1, WHOLE, b"\x20" + BLOCK))
    heads = peer.connection._blocks.known

    for number in range(1500):
        fields = [*FIELDS, (b"x-request-id", str(number).encode())]
        peer.send(headers(2 * number + 3, WHOLE, encode_fields(fields)))
        peer.connection.respond(2 * number + 3, b"", [], 0, b"", 0.0)
    peer.send(headers(9001, WHOLE, encode_fields([*FIELDS, (b"x", bytes(b"x" * 4000))])))

    assert len(heads) == 1024
    assert max(map(len, heads)) < 2048
