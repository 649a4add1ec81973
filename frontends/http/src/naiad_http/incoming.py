"""Requests on their way in: bodies of which a part is still to come, and the messages that they become."""

from dataclasses import dataclass

import numpy as np

from naiad.buffers import Buffer
from naiad_http.chunks import ChunkReader
from naiad_http.heads import HttpHead

LONGEST_HEAD = 65536
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

    head: HttpHead
    front: Buffer
    rest: Buffer


@dataclass(slots=True, eq=False)
class FixedBody:
    """A body with a Content-Length: `body` is its memory, `filled` how much of it is there."""

    head: HttpHead
    body: memoryview
    filled: int = 0

    @classmethod
    def of(cls, head: HttpHead) -> "FixedBody":
        """Reserve the memory, so that the tensors behind the JSON begin on a multiple of their element size."""
        padding = padding_of(head, head.length)
        return cls(head, memoryview(np.empty(padding + head.length, np.uint8))[padding:])  # type: ignore[arg-type]

    @property
    def missing(self) -> str:
        """What is missing, in words."""
        return f"the body ends after {self.filled} of the {len(self.body)} bytes that Content-Length says"

    @property
    def size(self) -> int:
        """How many bytes of it are here."""
        return self.filled

    def buffer(self, _scratch: Scratch) -> memoryview:
        """Where the next bytes go."""
        return self.body[self.filled :]

    def message(self) -> Message:
        """The complete request."""
        if self.head.split is None:
            return Message(self.head, self.body, b"")
        border = border_of(self.head, len(self.body))
        return Message(self.head, bytes(self.body[:border]), self.body[border:])


@dataclass(slots=True, eq=False)
class ChunkedBody:
    """A chunked body on its way."""

    head: HttpHead
    chunks: ChunkReader

    @property
    def missing(self) -> str:
        """What is missing, in words."""
        return "the chunked body ends without its last chunk"

    @property
    def size(self) -> int:
        """How many bytes of it are here."""
        return self.chunks.size

    def buffer(self, scratch: Scratch) -> memoryview:
        """Where the next bytes go."""
        return scratch.view

    def message(self) -> Message:
        """The complete request."""
        body = self.chunks.view()
        border = border_of(self.head, len(body))
        front = body if self.head.split is None else bytes(body[:border])
        return Message(self.head, front, body[border:])


@dataclass(slots=True, eq=False)
class SkippedBody:
    """The `rest` of a body whose head is refused."""

    rest: int

    @property
    def size(self) -> int:
        """How many bytes of it are here."""
        return 0

    @property
    def missing(self) -> str:
        """What is missing, in words."""
        return ""

    def buffer(self, scratch: Scratch) -> memoryview:
        """Where the next bytes go."""
        return scratch.view


def padding_of(head: HttpHead, size: int) -> int:
    """The bytes in front of a body of `size` bytes that align the tensors behind its JSON; `size` 0 is not known."""
    split = head.split or 0
    return -(border_of(head, size) if size else max(0, split)) % _ALIGNMENT


def border_of(head: HttpHead, size: int) -> int:
    """How many of the `size` bytes of the body are the front: all, unless the head says how long the JSON is."""
    split = head.split
    return size if split is None or not 0 <= split <= size else split
