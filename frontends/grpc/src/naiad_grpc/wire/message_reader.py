"""Reader of framed messages: a byte that says whether it is compressed, four of length, and the message."""

from collections.abc import Callable
from struct import Struct

import numpy as np

from naiad_grpc.http2.streams import Buffer
from naiad_grpc.statuses import Code, RpcError
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES

PREFIX = Struct(">BI")
"""In front of each message: 1 if it is compressed, otherwise 0, and its length."""
PREFIX_BYTES = PREFIX.size

_GROWTH = 4
"""A longer message counts as so many times what has come of it, at most."""

_LARGE, _LARGE_PAGE = 4 << 20, 2 << 20
"""From such a size on, the first bytes of a message may take a large page: numpy asks Linux for these."""

Framed = tuple[bool, Buffer]
"""Whether a message is compressed, and its bytes."""

Memory = Callable[[Buffer, int], memoryview]
"""Memory for a message of so many bytes, of which the first ones have come."""


class MessageReader:
    """Puts the messages of one request together from the data of its stream. `most` is the limit of a message.

    A message of more than 64 KiB that comes in parts is a view of `memory`, or `bytes` where that is None.

    `size` is that of the current message, of which `missing` bytes have not come yet. What counts of it for the byte
    budget is `held`, which grows as bytes come, because a client may announce what it never sends: the system has pages
    only for what is written. `owed` is what has been added to it, and is to be charged.
    """

    __slots__ = ("_buffer", "_compressed", "_memory", "_most", "_prefix", "held", "missing", "owed", "size")

    def __init__(self, most: int, memory: Memory | None = None) -> None:
        self.missing = self.size = self.held = self.owed = 0
        self._most = most
        self._memory = memory
        self._prefix = b""
        self._buffer: memoryview | None = None
        self._compressed = False

    @property
    def is_between_messages(self) -> bool:
        """Whether no message has begun."""
        return not (self.missing or self._prefix)

    def room(self) -> memoryview | None:
        """Where the bytes belong that the current message lacks, None if it has no memory yet.

        Bytes that are received at its beginning are passed to `read` as any others, which need not copy them then.
        """
        return None if self._buffer is None else self._buffer[self.size - self.missing :]

    def read(self, content: bytes | memoryview) -> list[Framed]:
        """The messages that this data completes.

        Raises RpcError for one over the limit or the memory, and for a broken prefix.
        """
        messages: list[Framed] = []
        offset, end = 0, len(content)
        while offset < end:
            if self.missing:
                offset += self._fill(content[offset : offset + self.missing], messages)
                continue
            taken = content[offset : offset + PREFIX_BYTES - len(self._prefix)]
            offset += len(taken)
            self._prefix += taken
            if len(self._prefix) < PREFIX_BYTES:
                break
            size = self._begin()
            if size <= min(end - offset, UNCHARGED_BYTES):
                messages.append((self._compressed, bytes(content[offset : offset + size])))
                offset += size
            else:
                self.missing = size
                self._count(UNCHARGED_BYTES if size < _LARGE else _LARGE_PAGE)
        return messages

    def _fill(self, taken: bytes | memoryview, messages: list[Framed]) -> int:
        """Add the next bytes to the current message, and this to `messages` if it is complete; how many they are."""
        count, filled = len(taken), self.size - self.missing
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = self._reserved(taken)
        if isinstance(taken, bytes) or taken.obj is not buffer.obj:  # otherwise it was received there
            buffer[filled : filled + count] = taken
        if filled + count > self.held:
            self._count(_GROWTH * (filled + count))
        self.missing -= count
        if not self.missing:
            is_view = self.size > UNCHARGED_BYTES and (self._compressed or self._memory is not None)
            messages.append((self._compressed, buffer if is_view else bytes(buffer)))
            self._buffer, self.held = None, 0
        return count

    def _reserved(self, front: bytes | memoryview) -> memoryview:
        """Memory for the current message, which begins with these bytes. Raises RpcError where there is none."""
        try:
            if self._memory is None or self._compressed:
                return memoryview(np.empty(self.size, np.uint8))  # type: ignore[arg-type]
            return self._memory(front, self.size)
        except MemoryError:
            reason = f"the server has no memory for a message of {self.size} bytes"
            raise RpcError(Code.RESOURCE_EXHAUSTED, reason) from None

    def _count(self, held: int) -> None:
        """Count so many bytes of the current message, at most all of it. A small message does not count."""
        if self.size > UNCHARGED_BYTES:
            held = min(held, self.size)
            self.owed += held - self.held
            self.held = held

    def _begin(self) -> int:
        """The length that the complete prefix announces."""
        flag: int
        size: int
        flag, size = PREFIX.unpack(self._prefix)
        self._prefix = b""
        if flag > 1:
            raise RpcError(Code.INTERNAL, f"the prefix of a message starts with {flag}, which must be 0 or 1")
        if size > self._most:
            reason = f"Received message larger than max ({size} vs. {self._most}); see --grpc-max-message-size"
            raise RpcError(Code.RESOURCE_EXHAUSTED, reason)
        self._compressed = flag == 1
        self.size = size
        return size


def prefix(size: int, compressed: bool = False) -> bytes:
    """The bytes in front of a message of that size."""
    return PREFIX.pack(compressed, size)
