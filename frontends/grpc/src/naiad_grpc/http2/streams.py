"""Streams of a connection that are open or half-closed, with their windows and the data that waits to be sent."""

from collections import deque

from naiad_grpc.http2.states import State

Buffer = bytes | bytearray | memoryview


class Stream:
    """One stream: its state, its windows in both directions, and its queue of data.

    `window` is how much we may send, `receive_window` how much the client may; `unread` is what it has sent and we have
    not granted again, negative where we have granted more than that; `suffices` says that the window has room for all
    that may still come, so that none is granted. `expected` is the rest of its content-length, -1
    without one. `trailers` wait for the end of the queue; `sent_all` says that they went out. `stalled_since` is when
    the queue last moved, and had `stalled_at` bytes.
    """

    __slots__ = (
        "expected",
        "id",
        "paused",
        "queue",
        "queued",
        "receive_window",
        "sent_all",
        "stalled_at",
        "stalled_since",
        "state",
        "suffices",
        "trailers",
        "unread",
        "window",
    )

    def __init__(self, stream_id: int, state: State, window: int, receive_window: int, expected: int) -> None:
        self.id = stream_id
        self.state = state
        self.window = window
        self.receive_window = receive_window
        self.unread = 0
        self.expected = expected
        self.paused = self.suffices = False
        self.queue: deque[Buffer] | None = None
        self.queued = 0
        self.trailers: bytes | None = None
        self.sent_all = False
        self.stalled_at = 0
        self.stalled_since = 0.0
