"""The library h2 as a client: what it sends is accepted, however its bytes are split, and it accepts what is sent."""

import h2.config
import h2.connection
import h2.events
from hypothesis import given, settings
from hypothesis import strategies as some

from naiad_grpc.http2.events import DataReceived, RequestReceived, StreamEnded
from naiad_grpc.http2.header_blocks import encode_fields
from naiad_grpc.http2.timers import Timeouts

from .conftest import FIELDS, Peer

HEAD, TRAILERS = encode_fields([(b":status", b"200")]), encode_fields([(b"grpc-status", b"0")])
STEPS = some.lists(
    some.tuples(
        some.sampled_from(["open", "data", "end", "reset", "ping", "answer", "settings"]),
        some.integers(0, 9),
        some.integers(0, 40_000),
    ),
    max_size=30,
)


class Client:
    """h2 in the role of the client, and the connection under test."""

    def __init__(self, cuts=()):
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.peer = Peer(timeouts=Timeouts(most_ping_strikes=0))  # the clock stands: any second ping would be too early
        self.cuts = list(cuts)
        self.events = []
        self.received = []
        self.open = {}
        self.answers = 0
        self.h2.initiate_connection()
        self.exchange()

    def exchange(self):
        for _ in range(4):
            data = self.h2.data_to_send()
            for cut in [*self.cuts, len(data)]:
                part, data = data[:cut], data[cut:]
                self.events += self.take(part)
            sent = b"".join(self.peer.connection.outbox.frames)
            self.peer.connection.outbox.frames.clear()
            self.receive(sent)

    def take(self, part):
        """The events of these bytes; views in them become bytes."""
        events = self.peer.connection.receive(part, 0.0)
        for event in events:
            if isinstance(event, DataReceived | RequestReceived):
                event.content = bytes(event.content)
        return events

    def receive(self, sent):
        for event in self.h2.receive_data(sent):
            self.received.append(event)
            if isinstance(event, h2.events.DataReceived):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def step(self, kind, which, size):
        live = [stream for stream, ended in self.open.items() if not ended]
        stream = live[which % len(live)] if live else 0
        if kind == "open":
            stream = self.h2.get_next_available_stream_id()
            self.h2.send_headers(stream, FIELDS)
            self.open[stream] = False
        elif kind == "ping":
            self.h2.ping(b"12345678")
        elif kind == "settings":
            self.h2.update_settings({4: size + 1})
        elif kind == "answer":
            for each in list(self.peer.connection.streams):
                if self.open.get(each):
                    self.peer.connection.respond(each, HEAD, [bytes(size)], size, TRAILERS, 0.0)
                    self.answered(each)
        elif stream and kind == "reset":
            self.h2.reset_stream(stream)
            del self.open[stream]
        elif stream and kind == "end":
            self.h2.end_stream(stream)
            self.open[stream] = True
        elif stream:
            room = min(self.h2.local_flow_control_window(stream), size, self.h2.max_outbound_frame_size)
            self.h2.send_data(stream, bytes(room))
        self.exchange()

    def answered(self, stream):
        self.answers += 1
        del self.open[stream]


def as_streams(events):
    """What the events say of each stream, wherever its data was cut."""
    streams = {}
    for event in events:
        stream = streams.setdefault(event.stream_id, ["", 0, False, False])
        if isinstance(event, RequestReceived):
            stream[0] += event.head.path.decode()
            stream[1] += len(event.content)
            stream[2] = event.ended
        elif isinstance(event, DataReceived):
            stream[1] += len(event.content)
            stream[2] = stream[2] or event.ended
        elif isinstance(event, StreamEnded):
            stream[3] = True
    return streams


@settings(max_examples=40)
@given(steps=STEPS, cuts=some.lists(some.integers(0, 50), max_size=6))
def test_any_legal_sequence_is_accepted_however_it_is_split(steps, cuts):
    whole, split = Client(), Client(cuts)

    for step in steps:
        whole.step(*step)
        split.step(*step)

    assert not whole.peer.connection.ended
    assert as_streams(whole.events) == as_streams(split.events)
    assert not [event for event in whole.received if isinstance(event, h2.events.ConnectionTerminated)]
    complete = [event for event in whole.received if isinstance(event, h2.events.TrailersReceived)]
    waiting = [stream for stream in whole.peer.connection.streams.values() if stream.trailers is not None]
    assert len(complete) + len(waiting) == whole.answers


@settings(max_examples=25)
@given(size=some.integers(0, 100_000), window=some.integers(1000, 70_000))
def test_an_answer_of_any_size_arrives_whole_through_any_window(size, window):
    client = Client()
    client.h2.update_settings({4: window})
    client.exchange()
    client.step("open", 0, 0)
    client.step("end", 0, 0)
    content = bytes(range(256)) * (size // 256 + 1)

    client.peer.connection.respond(1, HEAD, [content[:size]], size, TRAILERS, 0.0)
    for _ in range(500):
        client.exchange()
        if any(isinstance(event, h2.events.StreamEnded) for event in client.received):
            break

    data = b"".join(event.data for event in client.received if isinstance(event, h2.events.DataReceived))
    assert data == content[:size]
    assert any(isinstance(event, h2.events.TrailersReceived) for event in client.received)
    assert not client.peer.connection.streams
