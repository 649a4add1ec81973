"""Incomplete request bodies, and the complete messages that they become."""

from dataclasses import dataclass

import numpy as np

from naiad_http.chunks import ChunkReader
from naiad_http.heads import HttpHead
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.body_memory import SMALLEST_BODY, Reserve, no_body_memory

LONGEST_HEAD = 65536
_ALIGNMENT = 16


class Scratch:
    """Receive buffer for bytes that do not belong to a body with its own memory.

    All connections of one event loop share it: the loop requests, fills and reports the buffer in one step, and a
    reader has consumed everything when it returns.
    """

    def __init__(self, size: int = LONGEST_HEAD) -> None:
        self.content = bytearray(size)
        self.view = memoryview(self.content)


@dataclass(slots=True, eq=False)
class Message:
    """A complete request: the body is `front` and then `rest`, split at the header length of an infer request.

    `front` is `bytes` if the body is split.
    """

    head: HttpHead
    front: Buffer
    rest: Buffer


@dataclass(slots=True, eq=False)
class FixedBody:
    """A body with a Content-Length: `body` is its memory, `filled` the number of bytes that have arrived."""

    head: HttpHead
    body: memoryview
    filled: int = 0

    @classmethod
    def of(cls, head: HttpHead, reserve: Reserve = no_body_memory) -> "FixedBody":
        """Reserve the memory, so that the tensors behind the JSON begin on a multiple of their element size.

        The memory of a large inference body comes from `reserve`, unless that returns None.
        """
        padding = padding_of(head, head.length)
        size, memory = padding + head.length, None
        if head.split is not None and head.request_head is not None and size >= SMALLEST_BODY:
            memory = reserve(head.request_head.model_name, size)
        if memory is None:
            memory = memoryview(np.empty(size, np.uint8))  # type: ignore[arg-type]
        return cls(head, memory[padding:])

    @property
    def missing(self) -> str:
        """The error message for the missing part."""
        return f"the body ends after {self.filled} of the {len(self.body)} bytes that Content-Length says"

    @property
    def size(self) -> int:
        """The number of bytes that have arrived."""
        return self.filled

    def buffer(self, _scratch: Scratch) -> memoryview:
        """The buffer for the next bytes."""
        return self.body[self.filled :]

    def message(self) -> Message:
        """The complete request."""
        if self.head.split is None:
            return Message(self.head, self.body, b"")
        border = border_of(self.head, len(self.body))
        return Message(self.head, bytes(self.body[:border]), self.body[border:])


@dataclass(slots=True, eq=False)
class ChunkedBody:
    """An incomplete chunked body."""

    head: HttpHead
    chunks: ChunkReader

    @property
    def missing(self) -> str:
        """The error message for the missing part."""
        return "the chunked body ends without its last chunk"

    @property
    def size(self) -> int:
        """The number of bytes that have arrived."""
        return self.chunks.size

    def buffer(self, scratch: Scratch) -> memoryview:
        """The buffer for the next bytes."""
        return scratch.view

    def message(self) -> Message:
        """The complete request."""
        body = self.chunks.view()
        border = border_of(self.head, len(body))
        front = body if self.head.split is None else bytes(body[:border])
        return Message(self.head, front, body[border:])


@dataclass(slots=True, eq=False)
class SkippedBody:
    """The `rest` bytes of a body whose head is refused."""

    rest: int

    @property
    def size(self) -> int:
        """The number of bytes that have arrived."""
        return 0

    @property
    def missing(self) -> str:
        """The error message for the missing part."""
        return ""

    def buffer(self, scratch: Scratch) -> memoryview:
        """The buffer for the next bytes."""
        return scratch.view


def padding_of(head: HttpHead, size: int) -> int:
    """The padding before a body of `size` bytes (0: unknown) that aligns the tensors after its JSON."""
    split = head.split or 0
    return -(border_of(head, size) if size else max(0, split)) % _ALIGNMENT


def border_of(head: HttpHead, size: int) -> int:
    """The length of the front of a body of `size` bytes: all of it, unless the head has the length of the JSON."""
    split = head.split
    return size if split is None or not 0 <= split <= size else split
