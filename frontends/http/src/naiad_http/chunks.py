"""Incremental decoder of the chunked transfer coding (RFC 9112 section 7.1): strict, and bounded in every way."""

import re
from enum import Enum, auto

from naiad_http.statuses import HttpError

_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;[^\r\n]*)?")
_CHUNK_HEAD = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*+(?:;[^\r\n]{0,1024}+)?\r\n")
"""A complete size line, which is the usual case; the pattern does not backtrack."""
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00\r\n]*")
_LONGEST_LINE = 4096
_MOST_CHUNKS = 65536
_MOST_TRAILERS = 128


class _Next(Enum):
    """The kind of the next bytes."""

    SIZE = auto()
    CONTENT = auto()
    END_OF_CONTENT = auto()
    TRAILER = auto()
    NOTHING = auto()


class ChunkReader:
    """Takes the bytes after a head in any pieces and assembles the body, of at most `limit` bytes.

    Trailers are read and dropped. `padding` bytes precede the body in memory, so that the owner can align a part of it.
    """

    def __init__(self, limit: int, padding: int = 0) -> None:
        self._body = bytearray(padding)
        self._padding = padding
        self._limit = limit
        self._next = _Next.SIZE
        self._line = bytearray()
        self._remaining = 0
        self._chunks = 0
        self._trailers = 0

    @property
    def done(self) -> bool:
        """Whether the body is complete."""
        return self._next is _Next.NOTHING

    @property
    def size(self) -> int:
        """The number of bytes of the body that have arrived."""
        return len(self._body) - self._padding

    def view(self) -> memoryview:
        """The part of the body that has arrived, without a copy; feed nothing while the view is in use."""
        return memoryview(self._body)[self._padding :]

    def feed(self, content: memoryview) -> int:
        """Take bytes in and return how many belong to the body; fewer than all only if the body is complete.

        Raises HttpError 400 for a malformed or endless coding and for a body beyond the limit.
        """
        offset, end = 0, len(content)
        while offset < end and not self.done:
            if self._next is _Next.SIZE and not self._line:
                offset = self._feed_whole_chunks(content, offset, end)
                if offset == end:
                    break
            if self._next is _Next.CONTENT:
                taken = min(self._remaining, end - offset)
                self._body += content[offset : offset + taken]
                self._remaining -= taken
                offset += taken
                if self._remaining == 0:
                    self._next = _Next.END_OF_CONTENT
            else:
                offset += self._feed_line(bytes(content[offset : offset + _LONGEST_LINE]))
        return offset

    def _feed_whole_chunks(self, content: memoryview, offset: int, end: int) -> int:
        """Take in the complete chunks from `offset` on, and return the offset of the rest.

        A client may send a chunk for each byte: this is several times as fast as a line at a time. Unusual and invalid
        chunks are left to the other path.
        """
        while match := _CHUNK_HEAD.match(content, offset):
            begin = match.end()
            size = int(match[1], 16)
            after = begin + size
            if size == 0 or after + 2 > end or bytes(content[after : after + 2]) != b"\r\n":
                break
            if self._chunks == _MOST_CHUNKS or self.size + size > self._limit:
                break
            self._chunks += 1
            self._body += content[begin:after]
            offset = after + 2
        return offset

    def _feed_line(self, piece: bytes) -> int:
        """Take in the rest of a line, or as much of it as has arrived, and return the number of bytes taken."""
        taken = piece.find(b"\n") + 1 or len(piece)
        self._line += piece[:taken]
        if len(self._line) > _LONGEST_LINE:
            raise _malformed(f"a line is longer than {_LONGEST_LINE} bytes")
        if self._line.endswith(b"\n"):
            line, self._line = bytes(self._line), bytearray()
            if not line.endswith(b"\r\n"):
                raise _malformed("a line does not end with CRLF")
            self._take_line(line[:-2])
        return taken

    def _take_line(self, line: bytes) -> None:
        if self._next is _Next.SIZE:
            self._take_size(line)
        elif self._next is _Next.END_OF_CONTENT:
            if line:
                raise _malformed("a chunk is longer than its size says")
            self._next = _Next.SIZE
        elif line:
            if _TRAILER.fullmatch(line) is None:
                raise _malformed("a trailer is not NAME: VALUE")
            self._trailers += 1
            if self._trailers > _MOST_TRAILERS:
                raise _malformed(f"there are more than {_MOST_TRAILERS} trailers")
        else:
            self._next = _Next.NOTHING

    def _take_size(self, line: bytes) -> None:
        match = _SIZE_LINE.fullmatch(line)
        if match is None:
            raise _malformed("a chunk does not start with its size in hexadecimal digits")
        self._remaining = int(match[1], 16)
        if self._remaining == 0:
            self._next = _Next.TRAILER
            return
        self._chunks += 1
        if self._chunks > _MOST_CHUNKS:
            raise _malformed(f"there are more than {_MOST_CHUNKS} chunks; send fewer and larger ones")
        if self.size + self._remaining > self._limit:
            raise too_large(self.size + self._remaining, self._limit)
        self._next = _Next.CONTENT


def too_large(size: int, limit: int) -> HttpError:
    """The refusal of a body of `size` bytes or more; the status is Triton's, whose clients know no 413."""
    return HttpError(
        400,
        f"request JSON size of {size} bytes exceeds the maximum allowed input size of {limit} bytes. "
        "Use --http-max-input-size to increase the limit.",
    )


def _malformed(reason: str) -> HttpError:
    return HttpError(400, f"malformed chunked body: {reason}")
