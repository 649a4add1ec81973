"""Bytes from a connection to whole requests: framing only, no socket and no clock.

The owner of the connection asks `buffer` where the next bytes go, says with `received` how many came, and gets the
next event: a Message when a request is complete, CONTINUE when its sender waits for our word, or None when bytes are
missing.
A large body is received straight into its final place, which is not copied again.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from naiad.protocol.buffers import Buffer
from naiad_http.chunks import ChunkReader, too_large
from naiad_http.heads import Head, HeadReader
from naiad_http.statuses import HttpError

LONGEST_HEAD = 65536
_END_OF_HEAD = b"\r\n\r\n"
_ALIGNMENT = 16


class Scratch:
    """Where bytes are received that have no place of their own yet.

    All connections of one event loop share it: a loop hands it out, fills it and reports that in one go, and a reader
    leaves nothing in it when it returns.
    """

    def __init__(self, size: int = LONGEST_HEAD) -> None:
        self.content = bytearray(size)
        self.view = memoryview(self.content)


@dataclass(slots=True, eq=False)
class Message:
    """A complete request: the body is `front` and then `rest`, split where the head of an infer request says so.

    `front` is `bytes` where it is split.
    """

    head: Head
    front: Buffer
    rest: Buffer


class Signal(Enum):
    """What an owner must do before the current request can go on."""

    CONTINUE = "write 100 Continue"


Event = Message | Signal | None


class RequestReader:
    """Reads the requests of one connection, one after the other.

    Bytes of later requests wait in `kept` until `next_event` is called. Every method raises HttpError for what is no
    HTTP or passes a limit; after that the connection cannot be read any further but with `discard`.
    """

    def __init__(self, heads: HeadReader, limit: int, scratch: Scratch) -> None:
        self._heads = heads
        self._limit = limit
        self._scratch = scratch
        self._begun: _FixedBody | _ChunkedBody | None = None
        self._searched = 0
        self._discarding = False
        self.kept = bytearray()

    @property
    def in_body(self) -> bool:
        """Whether the next bytes belong to a body."""
        return self._begun is not None

    @property
    def missing(self) -> str:
        """What is missing of a request that has begun, in words; "" between requests."""
        if self._begun is not None:
            return self._begun.missing
        return "the request ends within its headers" if self.kept else ""

    def buffer(self) -> memoryview:
        """Where the next bytes go."""
        begun = self._begun
        return self._scratch.view if begun is None else begun.buffer(self._scratch)

    def received(self, count: int) -> Event:
        """Take in `count` bytes, which are in the buffer; the event that they make."""
        begun = self._begun
        if type(begun) is _FixedBody:
            begun.filled += count
            return self._complete(begun.message()) if begun.filled == len(begun.body) else None
        if self._discarding:
            return None
        if not self.kept:
            return self._read(self._scratch.content, self._scratch.view[:count])
        self.kept += self._scratch.view[:count]
        return self.next_event()

    def keep(self, count: int) -> None:
        """Take in `count` bytes, which are in the buffer, for later; not within a body."""
        if not self._discarding:
            self.kept += self._scratch.view[:count]

    def next_event(self) -> Event:
        """The next event of the bytes that are kept."""
        if not self.kept:
            return None
        if self._begun is None and self.kept.find(_END_OF_HEAD, self._searched) < 0:
            self._searched = max(0, len(self.kept) - len(_END_OF_HEAD) + 1)
            _refuse_long_head(len(self.kept))
            return None
        content, self.kept, self._searched = bytes(self.kept), bytearray(), 0
        return self._read(content, memoryview(content))

    def discard(self) -> None:
        """Let everything that still comes go by unread."""
        self._discarding = True
        self._begun = None
        self.kept = bytearray()

    def _read(self, content: bytes | bytearray, view: memoryview) -> Event:
        """The next event of these bytes; what lies behind it is kept."""
        if self._begun is not None:
            return self._read_chunks(view)
        end = len(view)
        start = _leading_newlines(view) if content[0] in b"\r\n" else 0
        border = content.find(_END_OF_HEAD, start, end)
        if border < 0:
            self.kept += view[start:]
            return None
        place = border + len(_END_OF_HEAD)
        _refuse_long_head(place - start)
        head = self._heads.read(bytes(view[start:place]))
        stop = place + head.length
        if stop > end or head.chunked or head.length > self._limit:
            return self._begin(head, view[place:])
        if stop < end:
            self.kept += view[stop:]
        if head.split is None:
            return Message(head, bytes(view[place:stop]), b"")
        border = place + _border(head, head.length)
        return Message(head, bytes(view[place:border]), bytes(view[border:stop]))

    def _begin(self, head: Head, view: memoryview) -> Event:
        """Begin a body that is not here yet, or not in one piece, with what is here of it."""
        if head.length > self._limit:
            raise too_large(head.length, self._limit)
        event: Event = Signal.CONTINUE if head.expects_continue and not view else None
        if head.chunked:
            self._begun = _ChunkedBody(head, ChunkReader(self._limit))
            return event or self._read_chunks(view)
        try:
            self._begun = _FixedBody.of(head)
        except MemoryError as error:
            reason = f"there is no memory for a body of {head.length} bytes now; try again later, or send less at once"
            raise HttpError(503, reason, (("Retry-After", "1"),)) from error
        self._begun.body[: len(view)] = view
        self._begun.filled = len(view)
        return event

    def _read_chunks(self, view: memoryview) -> Event:
        begun = self._begun
        if type(begun) is not _ChunkedBody:
            return None
        taken = begun.chunks.feed(view)
        if not begun.chunks.done:
            return None
        self.kept += view[taken:]
        return self._complete(begun.message())

    def _complete(self, message: Message) -> Message:
        self._begun = None
        return message


@dataclass(slots=True, eq=False)
class _FixedBody:
    """A body with a Content-Length: `body` is its place, `filled` how much of it is there."""

    head: Head
    body: memoryview
    filled: int = 0

    @classmethod
    def of(cls, head: Head) -> "_FixedBody":
        """Make the place, so that the tensors behind the JSON begin on a multiple of their element size."""
        padding = -_border(head, head.length) % _ALIGNMENT
        return cls(head, memoryview(np.empty(padding + head.length, np.uint8))[padding:])  # type: ignore[arg-type]

    @property
    def missing(self) -> str:
        return f"the body ends after {self.filled} of the {len(self.body)} bytes that Content-Length says"

    def buffer(self, _scratch: Scratch) -> memoryview:
        return self.body[self.filled :]

    def message(self) -> Message:
        if self.head.split is None:
            return Message(self.head, self.body, b"")
        border = _border(self.head, len(self.body))
        return Message(self.head, bytes(self.body[:border]), self.body[border:])


@dataclass(slots=True, eq=False)
class _ChunkedBody:
    """A chunked body on its way."""

    head: Head
    chunks: ChunkReader

    @property
    def missing(self) -> str:
        return "the chunked body ends without its last chunk"

    def buffer(self, scratch: Scratch) -> memoryview:
        return scratch.view

    def message(self) -> Message:
        body = self.chunks.body
        border = _border(self.head, len(body))
        return Message(self.head, bytes(body[:border]), bytes(body[border:]))


def _border(head: Head, size: int) -> int:
    """How many of the `size` bytes of the body are the front: all, unless the head says how long the JSON is."""
    split = head.split
    return size if split is None or not 0 <= split <= size else split


def _leading_newlines(view: memoryview) -> int:
    """How many bytes of empty lines stand in front of the request line; RFC 9112 section 2.2 lets them be skipped."""
    return next((place for place, byte in enumerate(view) if byte not in b"\r\n"), len(view))


def _refuse_long_head(size: int) -> None:
    if size > LONGEST_HEAD:
        raise HttpError(
            431, f"the request line and headers take more than {LONGEST_HEAD} bytes; send fewer or shorter ones"
        )
