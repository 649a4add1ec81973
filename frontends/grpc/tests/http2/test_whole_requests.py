"""Requests that come whole are taken in one step, with the same result as frame by frame."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from naiad_grpc.http2.events import DataReceived, RequestReceived
from naiad_grpc.http2.frames import ErrorCode
from naiad_grpc.http2.states import State
from naiad_grpc.http2.timers import Timeouts

from .conftest import (
    BLOCK,
    DATA,
    END,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    RST,
    SETTINGS,
    WINDOW,
    WITH_PRIORITY,
    Peer,
    block,
    frame,
    headers,
    number,
    setting,
)

OF_TEN = block((b"content-length", b"10"))
LIMITS = {"streams": 5, "stream_window": 15_000, "window": 90_000}
WIDENED = {
    "widened": [(0, 300)],
    "widened by 0": [(0, 0)],
    "widened too far": [(0, 2**31 - 1)],
    "another widened": [(2, 300)],
    "widened twice": [(0, 300), (0, 300)],
}
"""The windows that are widened between the head and the data of a request: of which earlier stream, and by how much."""
REQUESTS = some.tuples(
    some.sampled_from(
        ["plain", "widened"] * 4
        + ["widened by 0", "widened too far", "another widened", "widened twice"]
        + ["padded", "halves", "priority", "flag", "length", "late", "unknown", "trailers"]
    ),
    some.sampled_from([0, 1, 10, 300, 4095, 4096, 14_999, 15_000, 15_001, 16_384]),
    some.sampled_from([2] * 9 + [4, 1, 0, -2]),
)
CONTROLS = some.one_of(
    some.tuples(some.just("window"), some.integers(0, 9), some.sampled_from([0, 1, 500, 2**31 - 1])),
    some.tuples(some.sampled_from(["ping", "settings", "reset", "goaway"]), some.integers(0, 9), some.integers(0, 9)),
)
ROUNDS = some.lists(
    some.tuples(
        some.lists(REQUESTS | REQUESTS | CONTROLS, max_size=6),
        some.sampled_from(["answer", "nothing", "answer", "hold", "release", "drain", "pass time"]),
    ),
    max_size=6,
)


def greeted_peer(**limits):
    """A client that has given up its dynamic table, on a connection that knows its usual header block."""
    peer = Peer(timeouts=Timeouts(most_ping_strikes=0, stall=1e9), **{**LIMITS, **limits}).greet()
    peer.send(
        headers(1, END_HEADERS | END, b"\x20" + BLOCK), headers(3, END_HEADERS | END), headers(5, END_HEADERS, OF_TEN)
    )
    for stream in tuple(peer.connection.streams):
        peer.connection.respond(stream, b"", [], 0, b"", 0.0)
    peer.collect()
    peer.answers.clear()
    return peer


def request_frames(form, size, stream):
    content, fields = bytes(size), {"length": OF_TEN, "unknown": block((b"x", number(stream)))}.get(form, BLOCK)
    flags, priority = END_HEADERS, b""
    if form == "priority":
        flags, priority = flags | WITH_PRIORITY, b"\0\0\0\0\1"
    head = headers(stream, flags | (0x40 if form == "flag" else 0), priority + fields)
    if form in WIDENED:
        updates = [frame(WINDOW, 0, max(0, stream - less), number(by)) for less, by in WIDENED[form]]
        return [head, *updates, frame(DATA, END, stream, content)]
    if form == "padded":
        return [head, frame(DATA, END | PADDED, stream, b"\3" + content + bytes(3))]
    if form == "halves":
        return [head, frame(DATA, 0, stream, content[: size // 2]), frame(DATA, END, stream, content[size // 2 :])]
    if form == "late":
        return [head, frame(DATA, 0, stream, content)]
    if form == "trailers":
        return [head, frame(DATA, 0, stream, content), headers(stream, END_HEADERS | END, b"")]
    return [head, frame(DATA, END, stream, content)]


def frames_of(steps, last):
    """The frames of these steps, and the last number of a stream; the first stream is behind `last`."""
    frames = []
    for form, one, two in steps:
        if form == "window":
            frames.append(frame(WINDOW, 0, max(0, last - one) if one % 2 else 0, number(two)))
        elif form == "ping":
            frames.append(frame(PING, 0, 0, bytes(8)))
        elif form == "settings":
            frames.append(frame(SETTINGS, 0, 0, setting(4, one * 1000)))
        elif form == "reset":
            frames.append(frame(RST, 0, max(1, last - 2 * one), number(8)))
        elif form == "goaway":
            frames += [frame(GOAWAY, 0, 0, bytes(8))] if one == 0 else []
        else:
            stream = max(1, last + two)
            frames += request_frames(form, one, stream)
            last = max(last, stream)
    return frames, last


def deliver(peer, parts):
    """The events of these parts, a request that came whole as its head and its data."""
    events = []
    for part in filter(None, parts):
        for event in peer.send(part):
            if isinstance(event, RequestReceived) and event.ended and event.content:
                events.append(RequestReceived(event.stream_id, event.head, False))
                events.append(DataReceived(event.stream_id, event.content, True))
            elif isinstance(event, RequestReceived) and event.ended:  # with or without an empty frame of data
                events.append(RequestReceived(event.stream_id, event.head, True))
            elif isinstance(event, DataReceived) and event.ended and not event.content:
                last = events[-1] if events else None
                if isinstance(last, RequestReceived) and last.stream_id == event.stream_id:
                    last.ended = True
                else:
                    events.append(event)
            else:
                events.append(event)
    return events


def cut_everywhere(frames):
    """The bytes of the frames in parts, none of which begins or ends with a frame: nothing can be taken in one step."""
    parts, before = [], b""
    for each in frames:
        parts.append(before + each[:4])
        before = each[4:]
    return [*parts, before]


def slots(thing):
    return {name: getattr(thing, name) for name in type(thing).__slots__}


def state_of(connection):
    """All that a connection remembers."""
    state = dict(vars(connection))
    streams = {number: slots(stream) for number, stream in state.pop("streams").items()}
    outbox = slots(state.pop("outbox"))
    outbox["waiting"] = list(outbox["waiting"])
    rest = [slots(state.pop("_timers")), slots(state.pop("_budgets"))]
    reader, blocks = slots(state.pop("reader")), state.pop("_blocks")
    if connection.ended:  # what follows the end is not read
        reader = None
    return streams, outbox, rest, reader, sorted(blocks.known), state


def act(peer, action):
    connection, now = peer.connection, peer.now
    if action == "answer":
        for stream in tuple(connection.streams.values()):
            if stream.state is State.HALF_CLOSED and stream.trailers is None:
                connection.respond(stream.id, b"head", [bytes(400)], 400, b"end", now)
    elif action == "hold":
        connection.hold()
    elif action == "release":
        connection.release(now)
    elif action == "drain":
        connection.drain(now)
    elif action == "pass time":
        peer.now += 2.0
        connection.tick(peer.now)
    peer.collect()


@settings(max_examples=150)
@given(rounds=ROUNDS, cuts=some.lists(some.integers(0, 40_000), max_size=4))
def test_requests_in_one_piece_have_the_effect_of_their_frames(rounds, cuts):
    whole, split, framewise = greeted_peer(), greeted_peer(), greeted_peer()
    last = 5

    for steps, action in rounds:
        frames, last = frames_of(steps, last)
        data = b"".join(frames)
        borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        parts = [data[start:stop] for start, stop in pairwise(borders)]

        expected = deliver(framewise, cut_everywhere(frames))
        assert deliver(whole, [data]) == expected
        assert deliver(split, parts) == expected
        for peer in (framewise, whole, split):
            act(peer, action)
        assert whole.answers == split.answers == framewise.answers
        assert state_of(whole.connection) == state_of(split.connection) == state_of(framewise.connection)


@pytest.mark.parametrize(
    ("steps", "limits", "error"),
    [
        ([("length", 300, 2)], {}, (RST, 7, ErrorCode.PROTOCOL_ERROR)),
        ([("length", 0, 2)], {}, (RST, 7, ErrorCode.PROTOCOL_ERROR)),
        ([("plain", 10, 2)] * 6, {}, (RST, 17, ErrorCode.REFUSED_STREAM)),
        ([("plain", 15_001, 2)], {}, (RST, 7, ErrorCode.FLOW_CONTROL_ERROR)),
        ([("plain", 10_001, 2)], {"window": 10_000}, (GOAWAY, 0, ErrorCode.FLOW_CONTROL_ERROR)),
        ([("plain", (1 << 20) + 1, 2)], {"stream_window": 1 << 21}, (GOAWAY, 0, ErrorCode.FRAME_SIZE_ERROR)),
        ([("plain", 10, 2), ("plain", 10, 0)], {}, (RST, 7, ErrorCode.STREAM_CLOSED)),
        ([("plain", 10, 1)], {}, (GOAWAY, 0, ErrorCode.PROTOCOL_ERROR)),
    ],
)
def test_a_request_that_breaks_a_rule_fails_as_its_frames_do(steps, limits, error):
    whole, framewise = greeted_peer(**limits), greeted_peer(**limits)
    frames, _ = frames_of(steps, 5)

    expected = deliver(framewise, cut_everywhere(frames))

    assert deliver(whole, [b"".join(frames)]) == expected
    assert error in whole.errors()
    assert whole.answers == framewise.answers
    assert state_of(whole.connection) == state_of(framewise.connection)


def test_a_request_after_the_last_that_was_announced_is_refused():
    peer = greeted_peer()
    peer.send(*request_frames("plain", 10, 7))
    peer.connection.drain(peer.now)
    peer.now += 2.0
    peer.connection.tick(peer.now)

    events = peer.send(*request_frames("plain", 10, 9))

    assert events == []
    assert (RST, 9, ErrorCode.REFUSED_STREAM) in peer.errors()


def test_a_request_of_two_frames_is_one_event_with_its_content():
    peer = greeted_peer()

    events = peer.send(*(part for stream in (7, 9) for part in request_frames("plain", 300, stream)))

    assert [(type(event), event.stream_id, event.ended) for event in events] == [
        (RequestReceived, 7, True),
        (RequestReceived, 9, True),
    ]
    assert [event.content for event in events] == [bytes(300)] * 2
    assert all(stream.state is State.HALF_CLOSED for stream in peer.connection.streams.values())


def test_a_window_that_widens_between_requests_does_not_split_them():
    peer = greeted_peer()
    widened = frame(WINDOW, 0, 0, number(300))

    events = peer.send(widened, *request_frames("plain", 10, 7), widened, *request_frames("plain", 0, 9))

    assert [(event.stream_id, event.ended, event.content) for event in events] == [(7, True, bytes(10)), (9, True, b"")]
    assert peer.connection.outbox.window == 65535 + 600


def test_a_request_that_widens_its_window_first_is_one_event_too():
    peer = greeted_peer()
    between = frame(WINDOW, 0, 0, number(300))

    events = peer.send(*request_frames("widened", 10, 7), between, *request_frames("widened", 0, 9), between)

    assert [(event.stream_id, event.ended, event.content) for event in events] == [(7, True, bytes(10)), (9, True, b"")]
    assert [stream.window for stream in peer.connection.streams.values()] == [65535 + 300] * 2
    assert peer.connection.outbox.window == 65535 + 600


def test_windows_that_are_widened_with_whole_requests_are_counted():
    peer = greeted_peer(streams=100_000)

    for stream in range(7, 60_007, 2):
        peer.send(*request_frames("widened", 10, stream))
        if peer.connection.ended:
            break

    assert (GOAWAY, 0, ErrorCode.ENHANCE_YOUR_CALM) in peer.errors()
    assert stream > 40_000


def test_the_frames_of_an_unknown_block_are_two_events():
    peer = greeted_peer()

    events = peer.send(frame(HEADERS, END_HEADERS, 7, block((b"x", b"1"))), frame(DATA, END, 7, b"content"))

    assert [type(event) for event in events] == [RequestReceived, DataReceived]
