"""HTTP/1.1 request reader: bytes of a connection to complete requests; framing only, no socket and no clock.

The owner of the connection receives bytes into `buffer`, reports their number to `received`, and gets the next event:
a Message for a complete request, CONTINUE if the client waits for `100 Continue`, a Refusal for a refused head whose
body is still to come, or None if bytes are missing. A small body after a refused head is skipped: its Message comes at
once, without a body. A large body is received straight into its own memory and not copied again.
"""

import re
import sys
from dataclasses import dataclass
from enum import Enum

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
from naiad_kit.frontends.body_memory import Reserve, no_body_memory
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES, ByteBudget

_MOST_NEWLINES = 32
"""The maximum of bytes of empty lines before a request line: sixteen empty lines."""
_MOST_SKIPPED = 65536
"""The maximum of bytes after a refused head that are skipped to keep the connection."""
_RESERVED_AT_ONCE = 1 << 18
"""A body is reserved this many bytes ahead of those that have arrived: a head alone reserves little."""
_END_OF_HEAD = b"\r\n\r\n"
_BARE_NEWLINE = re.compile(rb"[^\r\n](?:\r\n)?\n")
"""A line of a head, or the empty line after it, that ends with LF alone. Empty lines before the request line may."""


class Signal(Enum):
    """What the owner must do before the current request can continue."""

    CONTINUE = "write 100 Continue"


@dataclass(slots=True, eq=False)
class Refusal:
    """The refusal of a head whose body is still to come; the connection cannot be read any further."""

    error: NaiadError | HttpError


Event = Message | Signal | Refusal | None


class RequestReader:
    """Reads the requests of one connection, one after the other.

    Bytes of later requests wait in `kept` until `next_event` is called. Every method raises HttpError for invalid HTTP
    and above a limit; after that the connection can only be read with `discard`.
    """

    def __init__(
        self,
        heads: HeadReader,
        limit: int,
        scratch: Scratch,
        budget: ByteBudget | None = None,
        reserve: Reserve = no_body_memory,
    ) -> None:
        """Bodies of more than 64 KiB are reserved from the budget as they arrive, until `release`.

        `reserve` has memory for the bodies of some models.
        """
        self._reserve_body = reserve
        self._heads = heads
        self._budget = budget or ByteBudget(sys.maxsize)
        self._limit = limit
        self._scratch = scratch
        self.begun: FixedBody | ChunkedBody | SkippedBody | None = None  # the body that the next bytes belong to
        self._searched = 0
        self._newlines = 0  # bytes of empty lines since the latest request
        self._discarding = False
        self.kept = bytearray()
        self.reserved = 0  # bytes of the budget that this connection has

    @property
    def body_size(self) -> int:
        """The number of bytes of the current body that have arrived."""
        return 0 if self.begun is None else self.begun.size

    @property
    def missing(self) -> str:
        """The error message for the missing part of the current request; "" between requests."""
        if self.begun is not None:
            return self.begun.missing
        return "the request ends within its headers" if self.kept else ""

    def buffer(self) -> memoryview:
        """The buffer for the next bytes."""
        begun = self.begun
        return self._scratch.view if begun is None else begun.buffer(self._scratch)

    def received(self, count: int) -> Event:
        """Take in the first `count` bytes of the buffer, and return the next event."""
        begun = self.begun
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
        """Keep the first `count` bytes of the buffer for later; not within a body."""
        if not self._discarding:
            self.kept += self._scratch.view[:count]
            if len(self.kept) > UNCHARGED_BYTES:
                self._budget.add(count)
                self.reserved += count

    def next_event(self) -> Event:
        """The next event of the kept bytes."""
        if type(self.begun) is SkippedBody:
            self._skip(self.begun)
        if not self.kept:
            return None
        if self.begun is None and self.kept.find(_END_OF_HEAD, self._searched) < 0:
            _check_line_ends(self.kept, self._searched, len(self.kept))
            self._searched = max(0, len(self.kept) - len(_END_OF_HEAD) + 1)
            if len(self.kept) > LONGEST_HEAD:
                raise _long_head()
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
            self.begun = None

    def discard(self) -> None:
        """Discard all further bytes."""
        self._discarding = True
        self.release()
        self.begun = None
        self.kept = bytearray()

    def release(self) -> None:
        """Release the reservation of the latest request, which is answered."""
        self._budget.release(self.reserved)
        self.reserved = 0

    def _reserve_ahead(self, begun: FixedBody) -> Refusal | None:
        """Reserve the next part of a large body; the refusal if the budget is exhausted."""
        size = len(begun.body)
        if size <= UNCHARGED_BYTES:
            return None
        return self._reserve(min(size, begun.filled + _RESERVED_AT_ONCE) - self.reserved)

    def _reserve(self, count: int) -> Refusal | None:
        """Reserve bytes for a body; the refusal if the budget is exhausted."""
        try:
            self._budget.reserve(count)
        except UnavailableError as error:
            return Refusal(error.with_traceback(None))
        self.reserved += count
        return None

    def _read(self, content: bytearray, view: memoryview) -> tuple[Event, int]:
        """The next event of these bytes, and the number of bytes that it takes; no view on them may remain."""
        if self.begun is not None:
            return self._read_chunks(view)
        end = len(view)
        start = self._skip_newlines(content, end) if content[0] in b"\r\n" else 0
        border = content.find(_END_OF_HEAD, start, end)
        if border < 0:
            _check_line_ends(content, start, end)
            return None, start
        begin = border + len(_END_OF_HEAD)
        if begin - start > LONGEST_HEAD:
            raise _long_head()
        self._newlines = 0
        head = self._heads.read(view[start:begin].tobytes())  # takes two thirds of the time of `bytes`
        stop = begin + head.length
        if stop > end or head.chunked or head.length > self._limit:
            event, taken = self._begin(head, view[begin:])
            return event, begin + taken
        if head.split is None:
            return Message(head, view[begin:stop].tobytes(), b""), stop
        border = begin + border_of(head, head.length)
        return Message(head, view[begin:border].tobytes(), view[border:stop].tobytes()), stop

    def _skip_newlines(self, content: bytearray, end: int) -> int:
        """The bytes of empty lines before the request line (RFC 9112 section 2.2). Raises HttpError for too many."""
        head = bytes(content[: min(end, _MOST_NEWLINES + 1)])
        count = len(head) - len(head.lstrip(b"\r\n"))
        self._newlines += count
        if self._newlines > _MOST_NEWLINES:
            raise HttpError(400, f"more than {_MOST_NEWLINES} bytes of empty lines stand in front of the request line")
        return count

    def _begin(self, head: HttpHead, view: memoryview) -> tuple[Event, int]:
        """Begin an incomplete or chunked body with the bytes that have arrived."""
        if head.refusal is not None:
            return self._refuse(head, head.refusal, min(len(view), head.length))
        if head.length > self._limit:
            raise too_large(head.length, self._limit)
        event: Event = Signal.CONTINUE if head.expects_continue and not view else None
        if head.chunked:
            self.begun = ChunkedBody(head, ChunkReader(self._limit, padding_of(head, 0)))
            return (event, 0) if event else self._read_chunks(view)
        try:
            if head.length > UNCHARGED_BYTES:
                self._budget.check(head.length)
            self.begun = FixedBody.of(head, self._reserve_body)
        except UnavailableError as error:
            return Refusal(error.with_traceback(None)), 0
        except MemoryError as error:
            reason = f"there is no memory for a body of {head.length} bytes now; try again later, or send less at once"
            raise HttpError(503, reason, (("Retry-After", "1"),)) from error
        self.begun.body[: len(view)] = view
        self.begun.filled = len(view)
        return self._reserve_ahead(self.begun) or event, len(view)

    def _refuse(self, head: HttpHead, refusal: NaiadError | HttpError, size: int) -> tuple[Event, int]:
        """Refuse a head; `size` bytes of its body have arrived."""
        closes = head.chunked or head.expects_continue or head.length > _MOST_SKIPPED or head.method == "HEAD"
        if closes:
            return Refusal(refusal), 0
        self.begun = SkippedBody(head.length - size)
        return Message(head, b"", b""), size

    def _read_chunks(self, view: memoryview) -> tuple[Event, int]:
        begun = self.begun
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
        self.begun = None
        return message


def _check_line_ends(content: bytearray, start: int, end: int) -> None:
    """Raise HttpError for a line of an incomplete head that ends with LF alone: its end would be waited for in vain."""
    if _BARE_NEWLINE.search(content, start, end) is not None:
        raise HttpError(400, "a line of the request line and headers ends with LF alone; end each with CR and LF")


def _long_head() -> HttpError:
    return HttpError(
        431, f"the request line and headers take more than {LONGEST_HEAD} bytes; send fewer or shorter ones"
    )
