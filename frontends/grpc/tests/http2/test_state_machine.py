"""A connection and the library h2 as its client, in any order of what both may do.

Each side acts while bytes of the other are under way, cut anywhere. Neither may ever see a violation of the protocol,
and in the end all that was sent has come, in order.
"""

from math import inf

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from naiad_grpc.http2.events import DataReceived, OutputSent, RequestReceived, StreamEnded
from naiad_grpc.http2.frames import ErrorCode
from naiad_grpc.http2.header_blocks import encode_fields
from naiad_grpc.http2.timers import Timeouts

from .conftest import FIELDS, Peer

HEAD = encode_fields([(b":status", b"200"), (b"content-type", b"application/grpc")])
TRAILERS = encode_fields([(b"grpc-status", b"0")])
SIZES = some.sampled_from([0, 1, 5, 1000, 16384, 16385, 70_000])
_BYTES = bytes(range(251)) * 300


def pattern(size, seed):
    """Bytes of which each part is different from those before it."""
    return _BYTES[seed % 251 : seed % 251 + size]


class Streams(RuleBasedStateMachine):
    """The client is `h2`, the server `peer.connection`; `up` and `down` are the bytes under way."""

    live = Bundle("live")

    def __init__(self):
        super().__init__()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.peer = Peer(timeouts=Timeouts(most_ping_strikes=0, stall=inf, handshake=inf, header_block=inf))
        self.up = self.down = b""
        self.requested, self.arrived, self.complete = {}, {}, set()
        self.ended_by_client, self.reset = set(), set()
        self.responded, self.received, self.finished = {}, {}, set()
        self.headed, self.closing, self.waiting = set(), set(), set()
        self.owed = {}
        self.unanswered = True
        self.h2.initiate_connection()

    # The client

    def collect(self):
        self.up += self.h2.data_to_send()
        self.down += b"".join(self.peer.connection.outbox.frames)
        self.peer.connection.outbox.frames.clear()

    @rule(target=live, whole=some.booleans(), priority=some.booleans())
    def begin(self, whole, priority):
        stream = self.h2.get_next_available_stream_id()
        further = {"priority_weight": 5, "priority_depends_on": 0} if priority else {}
        self.h2.send_headers(stream, FIELDS, end_stream=whole, **further)
        self.requested[stream] = b""
        if whole:
            self.ended_by_client.add(stream)
        return stream

    def may_send(self, stream):
        return not (stream in self.ended_by_client or stream in self.reset or stream in self.finished)

    @rule(stream=live, size=SIZES, padding=some.none() | some.integers(0, 255))
    def send_data(self, stream, size, padding):
        if self.may_send(stream):
            extra = 0 if padding is None else padding + 1
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size) - extra
            if room >= 0:
                content = pattern(min(size, room), len(self.requested[stream]))
                self.h2.send_data(stream, content, pad_length=padding)
                self.requested[stream] += content

    @rule(stream=live, trailers=some.booleans())
    def end_request(self, stream, trailers):
        if self.may_send(stream):
            if trailers:
                self.h2.send_headers(stream, [(b"x-late", b"1")], end_stream=True)
            else:
                self.h2.end_stream(stream)
            self.ended_by_client.add(stream)

    @rule(stream=consumes(live))
    def reset_by_client(self, stream):
        if stream not in self.finished and stream not in self.reset:
            self.h2.reset_stream(stream, 8)
            self.reset.add(stream)

    @rule()
    def ping_by_client(self):
        self.h2.ping(b"12345678")

    def change(self, settings):
        """Change settings of the client, whose library takes the answer to earlier ones for an answer to these."""
        if not self.unanswered:
            self.unanswered = True
            self.h2.update_settings(settings)

    @rule(window=some.sampled_from([0, 1, 100, 65535, 1 << 20]), frame=some.sampled_from([16384, 20_000]))
    def change_settings(self, window, frame):
        self.change({4: window, 5: frame})

    @rule(size=some.sampled_from([0, 100, 4096]))
    def change_table(self, size):
        self.change({1: size})

    @rule()
    def acknowledge_data(self):
        owed, self.owed = self.owed, {}
        for stream, size in owed.items():
            if size:
                self.h2.acknowledge_received_data(size, stream)

    @rule(size=some.integers(1, 1 << 20))
    def grant(self, size):
        if self.h2.inbound_flow_control_window < 1 << 29:
            self.h2.increment_flow_control_window(size)

    # The bytes between them

    @rule(size=some.integers(1, 200) | some.just(1 << 30))
    def deliver_to_server(self, size):
        self.collect()
        part, self.up = self.up[:size], self.up[size:]
        self.note_at_server(self.peer.connection.receive(part, self.peer.now))
        self.collect()

    @rule(size=some.integers(1, 200) | some.just(1 << 30))
    def deliver_to_client(self, size):
        self.collect()
        part, self.down = self.down[:size], self.down[size:]
        self.note_at_client(self.h2.receive_data(part))
        self.collect()

    def note_at_server(self, events):
        for event in events:
            if isinstance(event, RequestReceived):
                assert event.head.path == b"/a/b"
                self.arrived[event.stream_id] = bytes(event.content)
                if event.ended:
                    self.complete.add(event.stream_id)
            elif isinstance(event, DataReceived):
                self.arrived[event.stream_id] += bytes(event.content)
                if event.ended:
                    self.complete.add(event.stream_id)
            elif isinstance(event, StreamEnded):
                assert event.stream_id in self.reset
            else:
                assert isinstance(event, OutputSent)
                self.waiting.discard(event.stream_id)

    def note_at_client(self, events):
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                self.received[event.stream_id] = self.received.get(event.stream_id, b"") + event.data
                self.owed[event.stream_id] = self.owed.get(event.stream_id, 0) + event.flow_controlled_length
            elif isinstance(event, h2.events.StreamEnded):
                self.finished.add(event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                assert event.error_code in (ErrorCode.NO_ERROR, ErrorCode.REFUSED_STREAM)
                self.reset.add(event.stream_id)
            elif isinstance(event, h2.events.SettingsAcknowledged):
                self.unanswered = False
            else:
                assert not isinstance(event, h2.events.ConnectionTerminated)

    # The server

    def servable(self, stream):
        """Whether the server may still send on a stream."""
        return stream in self.peer.connection.streams and stream not in self.closing

    @rule(stream=live, size=SIZES)
    def respond(self, stream, size):
        if self.servable(stream) and stream not in self.headed:
            content = pattern(size, 7)
            self.peer.connection.respond(stream, HEAD, [content[:5], content[5:]], size, TRAILERS, self.peer.now)
            self.responded[stream] = content
            self.headed.add(stream)
            self.closing.add(stream)

    @rule(stream=live, size=SIZES)
    def send_message(self, stream, size):
        if self.servable(stream):
            if stream not in self.headed:
                self.peer.connection.send_head(stream, HEAD, self.peer.now)
                self.headed.add(stream)
            content = pattern(size, len(self.responded.get(stream, b"")))
            if not self.peer.connection.send_data(stream, [content], self.peer.now):
                self.waiting.add(stream)
            self.responded[stream] = self.responded.get(stream, b"") + content

    @rule(stream=live)
    def end_response(self, stream):
        if self.servable(stream):
            block = TRAILERS if stream in self.headed else HEAD + TRAILERS
            self.peer.connection.send_trailers(stream, block, self.peer.now)
            self.responded.setdefault(stream, b"")
            self.headed.add(stream)
            self.closing.add(stream)

    @rule(stream=live, on=some.booleans())
    def pause(self, stream, on):
        if stream in self.peer.connection.streams:
            (self.peer.connection.pause if on else self.peer.connection.resume)(stream)

    @rule(on=some.booleans())
    def hold(self, on):
        if on:
            self.peer.connection.hold()
        else:
            self.note_at_server(self.peer.connection.release(self.peer.now))

    @rule(seconds=some.sampled_from([0.001, 1.0, 60.0]))
    def time_passes(self, seconds):
        self.peer.now += seconds
        self.note_at_server(self.peer.connection.tick(self.peer.now))

    # What must hold

    @invariant()
    def nothing_ends_the_connection(self):
        assert not self.peer.connection.ended

    @invariant()
    def what_has_come_is_what_was_sent(self):
        for stream, content in self.arrived.items():
            assert self.requested[stream].startswith(content)
        for stream, content in self.received.items():
            assert self.responded[stream].startswith(content)

    def teardown(self):
        """Let everything arrive."""
        connection = self.peer.connection
        for _ in range(2):
            self.deliver_to_server(1 << 30)
            self.deliver_to_client(1 << 30)
        self.change({4: 1 << 30})
        self.h2.increment_flow_control_window((1 << 30) - self.h2.inbound_flow_control_window)
        self.note_at_server(connection.release(self.peer.now))
        for _ in range(6):
            self.deliver_to_server(1 << 30)
            self.deliver_to_client(1 << 30)
        for stream, content in self.responded.items():
            if stream not in self.reset:
                assert self.received.get(stream, b"") == content
                assert stream in self.finished or stream not in self.closing
        for stream in self.ended_by_client - self.reset - self.closing:
            assert stream in self.complete
            assert self.arrived[stream] == self.requested[stream]


TestStreams = Streams.TestCase
TestStreams.settings = settings(max_examples=25, stateful_step_count=30)
