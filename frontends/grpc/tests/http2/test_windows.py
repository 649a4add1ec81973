"""Flow control in both directions: what the server sends and grants, by the windows of streams and connection."""

import pytest

from naiad_grpc.http2.frames import ErrorCode
from naiad_grpc.http2.timers import Timeouts

from .conftest import DATA, END, END_HEADERS, HEADERS, PADDED, RST, WINDOW, frame, headers, number, setting
from .conftest import SETTINGS as SETTINGS_FRAME

WHOLE = END_HEADERS | END


def sent(peer):
    """The bytes of data on each stream."""
    sizes = {}
    for kind, _, stream, payload in peer.answers:
        if kind == DATA:
            sizes[stream] = sizes.get(stream, 0) + len(payload)
    return sizes


def grants(peer):
    return [(stream, int.from_bytes(payload, "big")) for kind, _, stream, payload in peer.answers if kind == WINDOW]


def test_the_first_frames_announce_the_windows_and_limits(make_peer):
    peer = make_peer(streams=7, stream_window=1 << 20, window=8 << 20)
    peer.collect()

    (_, _, _, payload), update = peer.answers

    values = {int.from_bytes(payload[at : at + 2], "big"): payload[at + 2 : at + 6] for at in range(0, len(payload), 6)}
    assert values == {1: number(0), 3: number(7), 4: number(1 << 20), 5: number(1 << 20), 6: number(16384)}
    assert update == (WINDOW, 0, 0, number((8 << 20) - 65535))


def test_no_more_is_sent_than_the_window_of_the_connection(peer):
    peer.send(headers(1, WHOLE), frame(WINDOW, 0, 1, number(1 << 20)))

    peer.connection.respond(1, b"", [bytes(100_000)], 100_000, b"", 0.0)
    peer.collect()
    before = sent(peer)
    peer.send(frame(WINDOW, 0, 0, number(1 << 20)))

    assert (before, sent(peer)) == ({1: 65535}, {1: 100_000})


def test_no_more_is_sent_than_the_window_of_the_stream(peer):
    peer.send(headers(1, WHOLE), frame(WINDOW, 0, 0, number(1 << 20)))

    peer.connection.respond(1, b"", [bytes(100_000)], 100_000, b"", 0.0)
    peer.collect()
    before = sent(peer)
    peer.send(frame(WINDOW, 0, 1, number(1 << 20)))

    assert (before, sent(peer)) == ({1: 65535}, {1: 100_000})


def test_a_smaller_initial_window_counts_for_streams_that_are_open_and_may_be_negative(peer):
    peer.send(headers(1))
    peer.connection.send_head(1, b"", 0.0)
    peer.connection.send_data(1, [bytes(1000)], 0.0)
    peer.send(frame(SETTINGS_FRAME, 0, 0, setting(4, 100)))
    complete = peer.connection.send_data(1, [bytes(10)], 0.0)
    peer.send(frame(WINDOW, 0, 1, number(905)))

    assert complete is False
    assert sent(peer) == {1: 1005}


@pytest.mark.parametrize("content", [[], [b""]], ids=["no data", "empty data"])
def test_an_empty_answer_needs_no_window(make_peer, content):
    peer = make_peer().greet(setting(4, 0))
    peer.send(headers(1, WHOLE))

    complete = peer.connection.respond(1, b"", content, 0, b"", 0.0)

    assert complete
    assert not peer.connection.streams


def test_streams_that_wait_for_the_same_window_take_turns(peer):
    for stream in (1, 3):
        peer.send(headers(stream, WHOLE), frame(WINDOW, 0, stream, number(1 << 20)))
        peer.connection.respond(stream, b"", [bytes(300_000)], 300_000, b"", 0.0)
    peer.collect()
    peer.answers.clear()

    peer.send(frame(WINDOW, 0, 0, number(200_000)))

    assert min(sent(peer).values()) >= 65536


def test_streams_take_turns_with_every_small_update_of_the_window(peer):
    for stream, size in ((1, 300_000), (3, 300_000), (5, 100)):
        peer.send(headers(stream, WHOLE), frame(WINDOW, 0, stream, number(1 << 20)))
        peer.connection.respond(stream, b"", [bytes(size)], size, b"", 0.0)
    peer.collect()
    peer.answers.clear()

    for _ in range(6):
        peer.send(frame(WINDOW, 0, 0, number(16_384)))

    assert sent(peer) == {1: 3 * 16_384 - 100, 3: 3 * 16_384, 5: 100}


def test_a_stream_that_gets_its_turn_late_is_not_stalled(make_peer):
    peer = make_peer(timeouts=Timeouts(stall=30)).greet()
    for stream in (1, 3):
        peer.send(headers(stream, WHOLE), frame(WINDOW, 0, stream, number(1 << 20)))
        peer.connection.respond(stream, b"", [bytes(1 << 20)], 1 << 20, b"", 0.0)

    for _ in range(10):
        peer.now += 10
        peer.send(frame(WINDOW, 0, 0, number(32_768)))
        peer.connection.tick(peer.now)
        peer.collect()

    assert peer.errors() == []


def test_a_stream_waits_for_its_turn_as_long_as_the_client_reads(make_peer):
    peer = make_peer(timeouts=Timeouts(stall=30)).greet()
    for stream in range(1, 100, 2):
        peer.send(headers(stream, WHOLE), frame(WINDOW, 0, stream, number(1 << 20)))
        peer.connection.respond(stream, b"", [bytes(1 << 20)], 1 << 20, b"", 0.0)

    for _ in range(10):
        peer.now += 10
        peer.send(frame(WINDOW, 0, 0, number(65_536)))
        peer.connection.tick(peer.now)
        peer.collect()
    while_it_reads = peer.errors()
    peer.connection.tick(peer.now + 30)
    peer.collect()

    assert while_it_reads == []
    assert len(peer.errors()) == 50


def test_a_stream_without_a_window_is_stalled_while_others_move(make_peer):
    peer = make_peer(timeouts=Timeouts(stall=30)).greet(setting(4, 0))
    for stream in (1, 3):
        peer.send(headers(stream, WHOLE))
        peer.connection.respond(stream, b"", [bytes(1 << 20)], 1 << 20, b"", 0.0)

    for _ in range(10):
        peer.now += 10
        peer.send(frame(WINDOW, 0, 0, number(4000)), frame(WINDOW, 0, 3, number(4000)))
        peer.connection.tick(peer.now)
        peer.collect()

    assert peer.errors() == [(RST, 1, ErrorCode.CANCEL)]


def test_frames_are_no_larger_than_the_client_takes(peer):
    peer.send(frame(SETTINGS_FRAME, 0, 0, setting(5, 20_000)), headers(1, WHOLE), frame(WINDOW, 0, 0, number(1 << 20)))
    peer.send(frame(WINDOW, 0, 1, number(1 << 20)))

    peer.connection.respond(1, b"", [bytes(50_000)], 50_000, b"", 0.0)
    peer.collect()

    assert [len(payload) for kind, _, _, payload in peer.answers if kind == DATA] == [20_000, 20_000, 10_000]


def test_a_window_is_granted_in_steps_of_half_its_size(make_peer):
    peer = make_peer(stream_window=100_000, window=200_000).greet()
    peer.send(headers(1))

    for _ in range(13):
        peer.send(frame(DATA, 0, 1, bytes(10_000)))

    assert grants(peer) == [(1, 50_000), (0, 100_000), (1, 50_000)]


def test_padding_counts_for_the_windows(make_peer):
    peer = make_peer(stream_window=100).greet()

    peer.send(headers(1), frame(DATA, PADDED, 1, b"\x5f" + b"x" * 4 + bytes(95)), frame(DATA, 0, 1, b"x"))

    assert grants(peer) == [(1, 100)]
    assert peer.errors() == []


def test_more_data_than_the_window_of_the_connection_ends_it(make_peer):
    peer = make_peer(window=65535).greet()
    peer.connection._ungranted = -(1 << 20)  # as if the server did not grant it again

    peer.send(headers(1), *(frame(DATA, 0, 1, bytes(16384)) for _ in range(4)))

    assert [code for _, _, code in peer.errors()] == [ErrorCode.FLOW_CONTROL_ERROR]


def test_a_stream_that_is_refused_gives_its_window_of_the_connection_back(make_peer):
    peer = make_peer(streams=1, window=200_000).greet()

    peer.send(headers(1), headers(3), *(frame(DATA, 0, 3, bytes(10_000)) for _ in range(10)))

    assert grants(peer) == [(0, 100_000)]
    assert [kind for kind, *_ in peer.errors()] == [RST]


@pytest.mark.parametrize(("size", "paused", "granted"), [(1000, False, 0), (5000, False, 5000), (5000, True, 4000)])
def test_a_message_that_is_expected_gets_its_window_at_once_and_the_next_one_the_usual(
    make_peer, size, paused, granted
):
    peer = make_peer(stream_window=1000).greet()
    peer.send(headers(1))
    if paused:
        peer.connection.pause(1)

    peer.connection.expect(1, size, False)
    peer.collect()

    assert grants(peer) == ([(1, granted)] if granted else [])
    assert peer.connection.streams[1].receive_window == 1000 + granted


@pytest.mark.parametrize("before", [0, 30])
def test_a_window_that_was_widened_for_a_message_is_the_usual_one_after_it(make_peer, before):
    peer = make_peer(stream_window=1000).greet()
    peer.send(headers(1), *(frame(DATA, 0, 1, bytes(10)) for _ in range(before)))

    for _ in range(3):
        peer.send(frame(DATA, 0, 1, bytes(100)))
        peer.connection.expect(1, 20_000, False)
        peer.send(frame(DATA, 0, 1, bytes(16_000)), frame(DATA, 0, 1, bytes(4000)))

    stream = peer.connection.streams[1]
    window = stream.receive_window + stream.unread
    peer.answers.clear()
    peer.send(*(frame(DATA, 0, 1, bytes(10)) for _ in range(60)))

    assert window == 1000
    assert [at for at, _ in grants(peer)] == [1]
    assert peer.errors() == []


@pytest.mark.parametrize("size", [100, 8_976, 8_977, 50_000])
@pytest.mark.parametrize("padding", [b"", bytes(255)])
def test_no_window_is_granted_while_the_last_message_comes_unless_it_may_be_too_small(make_peer, size, padding):
    peer = make_peer(stream_window=10_000, window=1 << 20).greet()
    peer.send(headers(1))
    peer.connection.expect(1, size, True)
    peer.collect()
    peer.answers.clear()

    sent = 0
    while sent < size + 1024:  # what comes behind the message can be refused
        part = bytes(min(1000, size + 1024 - sent))
        length = len(part) + (len(padding) + 1 if padding else 0)
        assert length <= peer.connection.streams[1].receive_window
        payload = bytes((len(padding),)) + part + padding if padding else part
        peer.send(frame(DATA, PADDED if padding else 0, 1, payload))
        sent += len(part)

    assert peer.errors() == []
    if not padding and size != 8_977:  # whose window would have room for 1023 bytes behind it
        assert grants(peer) == []


def test_data_waits_while_the_transport_is_full(peer):
    peer.send(headers(1, WHOLE))
    peer.connection.hold()

    complete = peer.connection.respond(1, b"", [b"abc"], 3, b"", 0.0)
    peer.collect()
    before = [kind for kind, *_ in peer.answers]
    events = peer.connection.release(1.0)
    peer.collect()

    assert (complete, before) == (False, [HEADERS])
    assert [type(event).__name__ for event in events] == ["OutputSent"]
    assert [kind for kind, *_ in peer.answers] == [HEADERS, DATA, HEADERS]


@pytest.mark.parametrize(("step", "stalls"), [(1, True), (2000, False)])
def test_a_client_that_takes_a_few_bytes_at_a_time_stalls_its_call(make_peer, step, stalls):
    peer = make_peer(timeouts=Timeouts(stall=30)).greet(setting(4, 0))
    peer.send(headers(1, WHOLE))
    peer.send(frame(WINDOW, 0, 0, number(1 << 20)))
    peer.connection.respond(1, b"", [bytes(1 << 20)], 1 << 20, b"", 0.0)

    for _ in range(100):
        peer.now += 1
        peer.send(frame(WINDOW, 0, 1, number(step)) if 1 in peer.connection.streams else b"")
        peer.connection.tick(peer.now)
        peer.collect()

    assert peer.errors() == ([(RST, 1, ErrorCode.CANCEL)] if stalls else [])
