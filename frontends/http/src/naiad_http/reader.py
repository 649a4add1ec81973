"""Bytes from a connection to whole requests: framing only, no socket and no clock.

The owner of the connection asks `buffer` where the next bytes go, says with `received` how many came, and gets the
next event: a Message when a request is complete, CONTINUE when its sender waits for our word, a Refusal where the head
is refused and its body is to come, or None when bytes are missing. A small body behind a refused head is skipped: its
Message comes at once, without a body.
A large body is received straight into its final place, which is not copied again.
"""

import sys
from dataclasses import dataclass
from enum import Enum

from naiad.byte_budget import UNCHARGED_BYTES, ByteBudget
from naiad.errors import NaiadError, UnavailableError
from naiad_http.chunks import ChunkReader, too_large
from naiad_http.heads import HeadReader, HttpHead
from naiad_http.incoming import (
    LONGEST_HEAD,
    ChunkedBody,
    FixedBody,
    Message,
    Scratch,
    SkippedBody,
    border_of,
    padding_of,
)
from naiad_http.statuses import HttpError

_MOST_NEWLINES = 32
"""The most bytes of empty lines in front of a request line: sixteen empty lines."""
_MOST_SKIPPED = 65536
"""Up to so many bytes behind a refused head are skipped so that the connection can be kept."""
_RESERVED_AT_ONCE = 1 << 18
"""A body is reserved so many bytes ahead of what has come: a head alone takes little."""
_END_OF_HEAD = b"\r\n\r\n"


class Signal(Enum):
    """What an owner must do before the current request can go on."""

    CONTINUE = "write 100 Continue"


@dataclass(slots=True, eq=False)
class Refusal:
    """A head that is refused while its body is still to come; the connection cannot be read any further."""

    error: NaiadError | HttpError


Event = Message | Signal | Refusal | None


class RequestReader:
    """Reads the requests of one connection, one after the other.

    Bytes of later requests wait in `kept` until `next_event` is called. Every method raises HttpError for what is no
    HTTP or passes a limit; after that the connection cannot be read any further but with `discard`.
    """

    def __init__(self, heads: HeadReader, limit: int, scratch: Scratch, budget: ByteBudget | None = None) -> None:
        """Bodies of more than 64 KiB are reserved from the budget as they come, until `release`."""
        self._heads = heads
        self._budget = budget or ByteBudget(sys.maxsize)
        self._limit = limit
        self._scratch = scratch
        self._begun: FixedBody | ChunkedBody | SkippedBody | None = None
        self._searched = 0
        self._newlines = 0  # bytes of empty lines since the latest request
        self._discarding = False
        self.kept = bytearray()
        self.reserved = 0  # bytes of the budget that this connection has

    @property
    def in_body(self) -> bool:
        """Whether the next bytes belong to a body."""
        return self._begun is not None

    @property
    def body_size(self) -> int:
        """How many bytes there are of the body that has begun."""
        return 0 if self._begun is None else self._begun.size

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
        if type(begun) is FixedBody:
            begun.filled += count
            refusal = self._reserve_ahead(begun) if begun.filled > self.reserved else None
            if refusal is not None or begun.filled < len(begun.body):
                return refusal
            return self._complete(begun.message())
        if self._discarding:
            return None
        if self.kept or type(begun) is SkippedBody:
            self.kept += self._scratch.view[:count]
            return self.next_event()
        event, taken = self._read(self._scratch.content, self._scratch.view[:count])
        if taken < count:
            self.kept += self._scratch.view[taken:count]
        return event

    def keep(self, count: int) -> None:
        """Take in `count` bytes, which are in the buffer, for later; not within a body."""
        if not self._discarding:
            self.kept += self._scratch.view[:count]
            if len(self.kept) > UNCHARGED_BYTES:
                self._budget.add(count)
                self.reserved += count

    def next_event(self) -> Event:
        """The next event of the bytes that are kept."""
        if type(self._begun) is SkippedBody:
            self._skip(self._begun)
        if not self.kept:
            return None
        if self._begun is None and self.kept.find(_END_OF_HEAD, self._searched) < 0:
            self._searched = max(0, len(self.kept) - len(_END_OF_HEAD) + 1)
            _refuse_long_head(len(self.kept))
            return None
        self._searched = 0
        event, taken = self._read(self.kept, memoryview(self.kept))
        del self.kept[:taken]  # moves the beginning and copies nothing, but for a copy each time that half is gone
        return event

    def _skip(self, begun: SkippedBody) -> None:
        count = min(begun.rest, len(self.kept))
        del self.kept[:count]
        begun.rest -= count
        if not begun.rest:
            self._begun = None

    def discard(self) -> None:
        """Let everything that still comes go by unread."""
        self._discarding = True
        self.release()
        self._begun = None
        self.kept = bytearray()

    def release(self) -> None:
        """Give back what is reserved for the latest request: it is answered."""
        self._budget.release(self.reserved)
        self.reserved = 0

    def _reserve_ahead(self, begun: FixedBody) -> Refusal | None:
        """Reserve the next part of a large body, or say why it cannot be had."""
        size = len(begun.body)
        if size <= UNCHARGED_BYTES:
            return None
        return self._reserve(min(size, begun.filled + _RESERVED_AT_ONCE) - self.reserved)

    def _reserve(self, count: int) -> Refusal | None:
        """Reserve bytes for a body, or say why they cannot be had."""
        try:
            self._budget.reserve(count)
        except UnavailableError as error:
            return Refusal(error.with_traceback(None))
        self.reserved += count
        return None

    def _read(self, content: bytearray, view: memoryview) -> tuple[Event, int]:
        """The next event of these bytes, and how many of them it takes; no view on them may stay behind."""
        if self._begun is not None:
            return self._read_chunks(view)
        end = len(view)
        start = self._skip_newlines(content, end) if content[0] in b"\r\n" else 0
        border = content.find(_END_OF_HEAD, start, end)
        if border < 0:
            return None, start
        place = border + len(_END_OF_HEAD)
        _refuse_long_head(place - start)
        self._newlines = 0
        head = self._heads.read(bytes(view[start:place]))
        stop = place + head.length
        if stop > end or head.chunked or head.length > self._limit:
            event, taken = self._begin(head, view[place:])
            return event, place + taken
        if head.split is None:
            return Message(head, bytes(view[place:stop]), b""), stop
        border = place + border_of(head, head.length)
        return Message(head, bytes(view[place:border]), bytes(view[border:stop])), stop

    def _skip_newlines(self, content: bytearray, end: int) -> int:
        """How many bytes of empty lines stand in front of the request line (RFC 9112 section 2.2); few are allowed."""
        head = bytes(content[: min(end, _MOST_NEWLINES + 1)])
        count = len(head) - len(head.lstrip(b"\r\n"))
        self._newlines += count
        if self._newlines > _MOST_NEWLINES:
            raise HttpError(400, f"more than {_MOST_NEWLINES} bytes of empty lines stand in front of the request line")
        return count

    def _begin(self, head: HttpHead, view: memoryview) -> tuple[Event, int]:
        """Begin a body that is not here yet, or not in one piece, with what is here of it."""
        if head.refusal is not None:
            return self._refuse(head, head.refusal, len(view))
        if head.length > self._limit:
            raise too_large(head.length, self._limit)
        event: Event = Signal.CONTINUE if head.expects_continue and not view else None
        if head.chunked:
            self._begun = ChunkedBody(head, ChunkReader(self._limit, padding_of(head, 0)))
            return (event, 0) if event else self._read_chunks(view)
        try:
            if head.length > UNCHARGED_BYTES:
                self._budget.check(head.length)
            self._begun = FixedBody.of(head)
        except UnavailableError as error:
            return Refusal(error.with_traceback(None)), 0
        except MemoryError as error:
            reason = f"there is no memory for a body of {head.length} bytes now; try again later, or send less at once"
            raise HttpError(503, reason, (("Retry-After", "1"),)) from error
        self._begun.body[: len(view)] = view
        self._begun.filled = len(view)
        return self._reserve_ahead(self._begun) or event, len(view)

    def _refuse(self, head: HttpHead, refusal: NaiadError | HttpError, size: int) -> tuple[Event, int]:
        """Refuse a head of whose body `size` bytes are here."""
        closes = head.chunked or head.expects_continue or head.length > _MOST_SKIPPED or head.method == "HEAD"
        if closes:
            return Refusal(refusal), 0
        self._begun = SkippedBody(head.length - size)
        return Message(head, b"", b""), size

    def _read_chunks(self, view: memoryview) -> tuple[Event, int]:
        begun = self._begun
        if type(begun) is not ChunkedBody:
            return None, 0
        taken = begun.chunks.feed(view)
        size = begun.size
        if size > UNCHARGED_BYTES and size > self.reserved:
            refusal = self._reserve(size - self.reserved)
            if refusal is not None:
                return refusal, taken
        return (self._complete(begun.message()) if begun.chunks.done else None), taken

    def _complete(self, message: Message) -> Message:
        self._begun = None
        return message


def _refuse_long_head(size: int) -> None:
    if size > LONGEST_HEAD:
        raise HttpError(
            431, f"the request line and headers take more than {LONGEST_HEAD} bytes; send fewer or shorter ones"
        )
