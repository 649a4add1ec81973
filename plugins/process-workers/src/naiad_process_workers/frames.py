"""The framing of the link between two processes: bytes and descriptors to frames and back, without a socket.

A frame is a header of 16 bytes and a body. Descriptors travel beside the bytes, in the order of the frames that have
them; a header says how many are its own.
"""

import logging
import struct
from collections import deque
from collections.abc import Container, Sequence
from typing import NamedTuple

from naiad.foreign_errors import describe_error

_logger = logging.getLogger("naiad.model")

_HEADER = struct.Struct("<IHHQ")

LONGEST_BODY = 1 << 30
"""A longer body is a broken link: payloads of 4 KiB and more are not in it."""

_MOST_BUFFERS, _MOST_DESCRIPTORS = 512, 64
"""The most buffers and descriptors of one write; the system allows 1,024 and 253."""


class LinkClosedError(Exception):
    """The other process has ended, or closed the connection."""


class LinkBrokenError(Exception):
    """The other side sent what no frame can be; the connection is of no more use."""


def broken(error: Exception) -> Exception:
    """What ends a link on which reading raised that: the error of a link as it is, another as LinkBrokenError."""
    if isinstance(error, LinkBrokenError | LinkClosedError):
        return error
    _logger.error("what a process sent cannot be read", exc_info=error)
    return LinkBrokenError(describe_error(error))


class Frame(NamedTuple):
    """One message: its `kind`, the `number` of what it is about, its body, and descriptors that the reader owns."""

    kind: int
    number: int
    body: bytes
    descriptors: tuple[int, ...] = ()


def frame_bytes(kind: int, number: int, body: bytes, descriptors: int = 0) -> bytes:
    """A frame with so many descriptors as bytes."""
    return _HEADER.pack(len(body), kind, descriptors, number) + body


class FrameWriter:
    """The frames that wait to be written. `take` and `sent` are for the owner of the socket."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[bytes | memoryview, tuple[int, ...]]] = deque()
        self._taken = 0

    def put(self, kind: int, number: int, body: bytes, descriptors: tuple[int, ...] = ()) -> None:
        """Write a frame after the ones before."""
        self.waiting.append((frame_bytes(kind, number, body, len(descriptors)), descriptors))

    def put_first(self, rest: bytes) -> None:
        """Write the rest of a frame before all others."""
        self.waiting.appendleft((rest, ()))

    def take(self) -> tuple[list[bytes | memoryview], list[int]]:
        """The buffers and descriptors of the next write."""
        buffers: list[bytes | memoryview] = []
        descriptors: list[int] = []
        for index in range(len(self.waiting)):  # the garbage collector may put more meanwhile
            buffer, own = self.waiting[index]
            if len(buffers) == _MOST_BUFFERS or len(descriptors) + len(own) > _MOST_DESCRIPTORS:
                break
            buffers.append(buffer)
            descriptors += own
        self._taken = len(buffers)
        return buffers, descriptors

    def sent(self, count: int) -> None:
        """The write of what was taken has sent so many bytes, at least one, and with them all descriptors."""
        taken = [self.waiting.popleft()[0] for _ in range(self._taken)]
        self._taken = 0
        rest: list[bytes | memoryview] = []
        for buffer in taken:
            if count >= len(buffer):
                count -= len(buffer)
            else:
                rest.append(memoryview(buffer)[count:])
                count = 0
        self.waiting.extendleft((buffer, ()) for buffer in reversed(rest))


class FrameReader:
    """Makes frames of what is read, in pieces of any size. Only frames of the `carriers` kinds may have descriptors."""

    def __init__(self, carriers: Container[int] = ()) -> None:
        self._carriers = carriers
        self._pieces: list[bytes] = []  # the begin of a frame, which are joined once, when all of it is there
        self._missing = 0
        self._descriptors: deque[int] = deque()

    def feed(self, read: bytes, descriptors: Sequence[int] = ()) -> list[Frame]:
        """The frames that are complete now. Raises LinkBrokenError."""
        self._descriptors.extend(descriptors)
        content = read
        if self._pieces:
            self._pieces.append(read)
            self._missing -= len(read)
            if self._missing > 0:
                return []
            content = b"".join(self._pieces)
        frames: list[Frame] = []
        start, end, missing = 0, len(content), 0
        while end - start >= 16:
            length, kind, count, number = _HEADER.unpack_from(content, start)
            if length > LONGEST_BODY or count > _MOST_DESCRIPTORS:
                raise LinkBrokenError(f"a frame of kind {kind} claims {length} bytes and {count} descriptors")
            stop = start + 16 + length
            if stop > end:
                missing = stop - end
                break
            if count and (kind not in self._carriers or count > len(self._descriptors)):
                raise LinkBrokenError(f"a frame of kind {kind} claims {count} descriptors, which it cannot have")
            own = tuple(self._descriptors.popleft() for _ in range(count)) if count else ()
            frames.append(Frame(kind, number, content[start + 16 : stop], own))
            start = stop
        self._pieces = [content[start:]] if start < end else []
        self._missing = missing
        return frames
