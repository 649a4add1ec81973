"""Reader of framed messages: a byte that says whether it is compressed, four of length, and the message."""

from struct import Struct

from naiad_grpc.http2.streams import Buffer
from naiad_grpc.statuses import Code, RpcError

PREFIX = Struct(">BI")
"""In front of each message: 1 if it is compressed, otherwise 0, and its length."""
PREFIX_BYTES = PREFIX.size

_AT_ONCE = 1 << 16
_GROWTH = 4
"""The buffer of a longer message has at most so many bytes at first; when it is full it becomes four times as long."""

Framed = tuple[bool, Buffer]
"""Whether a message is compressed, and its bytes."""


class MessageReader:
    """Puts the messages of one request together from the data of its stream. `most` is the limit of a message.

    `size` is that of the current message, of which `missing` bytes have not come yet, and `held` that of its buffer.
    The buffer grows only as bytes come, because a client may announce what it never sends. It grows by large steps: to
    append to the buffers of eight messages of 4 MiB in turns takes twice the time, because they have to be moved.
    """

    __slots__ = ("_buffer", "_compressed", "_filled", "_most", "_prefix", "held", "missing", "size")

    def __init__(self, most: int) -> None:
        self.missing = self.size = self.held = 0
        self._most = most
        self._prefix = b""
        self._buffer: bytearray | None = None
        self._filled = 0
        self._compressed = False

    @property
    def is_between_messages(self) -> bool:
        """Whether no message has begun."""
        return self._buffer is None and not self._prefix

    def read(self, content: bytes | memoryview) -> list[Framed]:
        """The messages that this data completes. Raises RpcError for one over the limit and a broken prefix."""
        messages: list[Framed] = []
        offset, end = 0, len(content)
        while offset < end:
            if self._buffer is None:
                taken = content[offset : offset + PREFIX_BYTES - len(self._prefix)]
                offset += len(taken)
                self._prefix += taken
                if len(self._prefix) < PREFIX_BYTES:
                    break
                size = self._begin()
                if end - offset >= size:
                    messages.append((self._compressed, bytes(content[offset : offset + size])))
                    offset += size
                else:
                    self.missing = self.size = size
                    self._buffer, self._filled = bytearray(_first(size)), 0
                    self.held = len(self._buffer)
            else:
                if self._filled == self.held:
                    self._buffer *= _GROWTH  # which repeats its content; what comes overwrites the repetitions
                    del self._buffer[self.size :]
                    self.held = len(self._buffer)
                taken = content[offset : offset + self.held - self._filled]
                filled = self._filled + len(taken)
                self._buffer[self._filled : filled] = taken
                self._filled = filled
                self.missing -= len(taken)
                offset += len(taken)
                if not self.missing:
                    messages.append((self._compressed, self._buffer))
                    self._buffer, self.held = None, 0
        return messages

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
        return size


def _first(size: int) -> int:
    """The length of the first buffer of a message, which becomes that of the message."""
    while size > _AT_ONCE:
        size = -(-size // _GROWTH)
    return size


def prefix(size: int, compressed: bool = False) -> bytes:
    """The bytes in front of a message of that size."""
    return PREFIX.pack(compressed, size)
