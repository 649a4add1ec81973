"""Frames of DATA that are longer than 16 KiB are passed on as they come."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from naiad_grpc.http2.events import DataReceived, RequestReceived

from .conftest import (
    CONTINUATION,
    DATA,
    END,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    PADDED,
    PREFACE,
    RST,
    SETTINGS,
    Peer,
    block,
    frame,
    headers,
)

LONG = 16385


def padded(content, padding):
    return bytes((padding,)) + content + bytes(padding)


@given(
    frames=some.lists(
        some.tuples(some.sampled_from([1, 3]), some.integers(0, 40_000), some.sampled_from([None, 0, 1, 255])),
        min_size=1,
        max_size=5,
    ),
    cuts=some.lists(some.integers(0, 200_000), max_size=20),
)
def test_any_cut_of_long_frames_gives_the_same_data(frames, cuts):
    peer = Peer(stream_window=1 << 20, window=1 << 23).greet()
    peer.send(headers(1), headers(3))
    data, sent, lengths = b"", {1: b"", 3: b""}, {1: 0, 3: 0}
    for number, (stream, size, padding) in enumerate(frames):
        content = bytes((number + 1,)) * size
        payload = content if padding is None else padded(content, padding)
        data += frame(DATA, 0 if padding is None else PADDED, stream, payload)
        sent[stream] += content
        lengths[stream] += len(payload)
    data += frame(DATA, END, 1) + frame(DATA, END, 3)
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})

    events = [event for start, stop in pairwise(borders) for event in peer.send(data[start:stop])]

    for stream in (1, 3):
        mine = [event for event in events if event.stream_id == stream]
        assert b"".join(event.content for event in mine) == sent[stream]
        assert [event.ended for event in mine] == [False] * (len(mine) - 1) + [True]
        state = peer.connection.streams[stream]
        assert state.receive_window + state.unread == (1 << 20)
        assert state.unread <= lengths[stream]
    assert peer.errors() == []


def test_a_long_frame_is_passed_on_before_it_is_whole():
    peer = Peer().greet()
    content = frame(DATA, END, 1, bytes(100_000))

    begun = peer.send(headers(1), content[:5000])
    ended = peer.send(content[5000:])

    assert begun[1:] == [DataReceived(1, bytes(5000 - 9), False)]
    assert ended == [DataReceived(1, bytes(100_009 - 5000), True)]


def test_the_windows_count_a_long_frame_with_its_padding():
    peer = Peer(stream_window=20_000, window=70_000).greet()
    peer.send(headers(1))

    peer.send(frame(DATA, PADDED, 1, padded(bytes(19_744), 255)))
    assert peer.errors() == []
    peer.connection.pause(1)
    peer.send(frame(DATA, PADDED, 1, padded(bytes(19_744), 255)), frame(DATA, 0, 1, b"x"))

    assert [(kind, stream) for kind, stream, _ in peer.errors()] == [(RST, 1)]


def test_the_rest_of_a_long_frame_is_dropped_when_its_stream_ends():
    peer = Peer().greet()
    content = frame(DATA, 0, 1, bytes(50_000))
    peer.send(headers(1), content[:100])
    peer.connection.respond(1, b"", [], 0, b"", 0.0)

    events = peer.send(content[100:20_000], content[20_000:], headers(3))

    assert [(type(event), event.stream_id) for event in events] == [(RequestReceived, 3)]
    assert [each for each in peer.errors() if each[0] == GOAWAY] == []


def test_long_data_before_settings_end_the_connection():
    peer = Peer()

    peer.send(PREFACE, frame(DATA, 0, 1, bytes(LONG))[:20])

    assert [kind for kind, _, _ in peer.errors()] == [GOAWAY]


@pytest.mark.parametrize("cut", [1, 8, 9, 10, 11, 5000, 20_000])
def test_a_long_header_block_in_one_frame_is_read_as_in_two(cut):
    content = block((b"x-long", bytes(97 + at % 26 for at in range(16_000))), (b"x-other", b"q" * 1200))
    assert len(content) > 16384
    one, two = Peer().greet(), Peer().greet()
    whole = frame(HEADERS, END_HEADERS | END, 1, content)

    events = one.send(whole[:cut]) + one.send(whole[cut:])

    assert events == two.send(
        frame(HEADERS, END, 1, content[:9000]), frame(CONTINUATION, END_HEADERS, 1, content[9000:])
    )
    assert [type(event) for event in events] == [RequestReceived]
    assert one.errors() == two.errors() == []


def test_a_frame_that_is_too_long_is_refused_by_its_head():
    peer = Peer().greet()
    peer.send(headers(1))

    peer.send(frame(DATA, 0, 1, bytes((1 << 20) + 1))[:9])

    assert [kind for kind, _, _ in peer.errors()] == [GOAWAY]


def test_settings_that_are_too_long_are_refused_by_their_head():
    peer = Peer().greet()

    peer.send(frame(SETTINGS, 0, 0, bytes(36_000))[:9])

    assert [kind for kind, _, _ in peer.errors()] == [GOAWAY]
