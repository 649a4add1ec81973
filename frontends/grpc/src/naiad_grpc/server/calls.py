"""Calls: what those of one message and those of streams have in common, from the head of a call to its status."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from naiad.errors import NaiadError
from naiad_grpc.inference_intake import CallContext, ExplainedContext
from naiad_grpc.server.methods import Method
from naiad_grpc.server.shared import CallConnection
from naiad_grpc.statuses import Code, RpcError, rpc_error, too_long
from naiad_grpc.unfinished import UnfinishedCall
from naiad_grpc.wire.compression import INLINE_BYTES, compress, decompress, largest
from naiad_grpc.wire.heads import CallHead, Metadata
from naiad_grpc.wire.message_reader import Framed, MessageReader, prefix
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES
from naiad_kit.frontends.codec_threads import CodecJob
from naiad_kit.frontends.connection_limits import BODY_SECONDS, SLOWEST_BYTES_PER_SECOND

ENDS_WITHIN = "the request ends within a message"
_COMPRESSED_INLINE = 16384
"""Answers up to this size are compressed on the event loop: that takes less than a millisecond."""


class Call(ABC):
    """What all calls have in common: context, deadline, incoming messages, charges, and the end.

    It is the context of its operation. `api` is the group of its RPC; `over` says that its status is sent, or that the
    client has left. The `head` is one object for calls of the same header block.
    """

    __slots__ = (
        "_began",
        "_charged",
        "_deadline",
        "_id",
        "_job",
        "_reader",
        "_received",
        "_sending",
        "_timer",
        "api",
        "connection",
        "head",
        "over",
    )
    _takes_one = False
    """Whether the request has one message."""

    def __init__(self, connection: CallConnection, stream_id: int, head: CallHead[Method], now: float) -> None:
        self.over = False
        self.api = "" if head.method is None else head.method.operation.api
        self.connection = connection
        self._id = stream_id
        self.head = head
        self._began = now
        self._reader: MessageReader | None = None
        self._received = 0
        self._charged = 0
        self._job: CodecJob[bytes] | None = None  # decompresses a message of the request
        self._sending: CodecJob[list[Buffer]] | None = None  # compresses one of the answer
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        if head.timeout is not None:
            self._deadline = now + head.timeout
            self._timer = connection.context.loop.call_at(self._deadline, self._expire)

    # The context of operations

    def time_remaining(self) -> float | None:
        """The seconds until the caller's deadline, None without one."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - self.connection.context.loop.time())

    def invocation_metadata(self) -> Metadata:
        """The caller's metadata."""
        return self.head.metadata()

    def peer_and_trace(self) -> tuple[str, str]:
        """The caller's address, "-" for none, and its trace context, "" for none."""
        return self.connection.peer, self.head.traceparent

    def context(self) -> CallContext:
        """The context for the operation."""
        method = self.head.method
        return ExplainedContext(self) if method is not None and method.explained else self

    # What the connection calls

    def memory(self) -> memoryview | None:
        """Where the next bytes of the request belong, None if that is not known yet."""
        return None if self._reader is None else self._reader.room()

    @abstractmethod
    def receive(self, content: bytes | memoryview, ended: bool) -> None:
        """Take data of the request."""

    @abstractmethod
    def sent(self) -> None:
        """All that was queued for a window has been sent."""

    @abstractmethod
    def _abandon(self) -> None:
        """Cancel the work: nobody waits for the result."""

    def cancel(self) -> None:
        """The client has cancelled the call, or its connection is lost."""
        if not self.over:
            self._end()
            self._abandon()

    @abstractmethod
    def cut(self) -> None:
        """The server stops: act as if the client had no more messages."""

    def unfinished(self) -> UnfinishedCall:
        """The call for the warning that it is cut off."""
        return UnfinishedCall(self.head.path, not self._is_awaited())

    def is_too_slow(self, now: float) -> bool:
        """Whether what the client owes has taken too long; data gives it a second for each 4 KiB."""
        if not self._is_awaited():
            return False
        return now - self._began > BODY_SECONDS + self._received / SLOWEST_BYTES_PER_SECOND

    # What calls do

    def _is_awaited(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._reader is not None and not self._reader.is_between_messages

    def fail(self, error: RpcError) -> None:
        """End the call with a status."""
        if not self.over:
            self.connection.send_status(self._id, error)
            self._end()
            self._abandon()

    def _expire(self) -> None:
        self._timer = None
        self.fail(RpcError(Code.DEADLINE_EXCEEDED, "Deadline Exceeded"))

    def _end(self) -> None:
        """The call is over: release what it holds."""
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._job is not None:
            self._job.cancel()
            self._job = None
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        if self._charged:
            self.connection.context.budget.release(self._charged)
            self._charged = 0
        self._reader = None
        self.connection.forget(self._id)

    def _read(self, content: bytes | memoryview) -> list[Framed]:
        """The messages that this data completes. Raises RpcError or NaiadError."""
        reader = self._reader
        if reader is None:
            method = self.head.method
            memory = None if method is None else method.operation.memory
            reader = self._reader = MessageReader(self.connection.context.most, memory)
        self._received += len(content)
        was_incomplete = reader.missing > 0
        messages = reader.read(content)
        if reader.missing and (messages or not was_incomplete):
            if reader.size > UNCHARGED_BYTES:
                self.connection.context.budget.check(reader.size)
            self.connection.http2.expect(self._id, reader.missing, self._takes_one)
        if reader.owed:
            owed, reader.owed = reader.owed, 0
            self._charge(owed)
        return messages

    def _charge(self, size: int) -> None:
        """Charge a message to the byte budget until the end of the call. Raises UnavailableError."""
        self.connection.context.budget.reserve(size)
        self._charged += size

    def _decompress(self, content: Buffer, then: Callable[[bytes], None]) -> None:
        """Call `then` with the message in a compressed one, now or later; errors end the call."""
        context, encoding = self.connection.context, self.head.encoding
        if encoding == "identity":
            self.fail(RpcError(Code.INTERNAL, "a message is compressed, but its call has no grpc-encoding"))
            return
        work = partial(decompress, content, encoding, context.most)
        if len(content) <= INLINE_BYTES:
            self._decompressed(then, _result_of(work))
            return
        try:
            self._charge(largest(len(content), context.most))
        except NaiadError as error:
            self.fail(rpc_error(error))
            return
        self._job = context.threads.submit(work, partial(self._decompressed, then), context.loop)

    def _decompressed(self, then: Callable[[bytes], None], message: bytes | BaseException) -> None:
        self._job = None
        if isinstance(message, BaseException):
            self.fail(rpc_error(message))
        elif not self.over:
            then(message)

    def _checked(self, message: bytes) -> bytes:
        """The message to send. Raises RpcError above the limit, which operations without tasks check themselves."""
        if len(message) > self.connection.context.most_sent:
            raise too_long(len(message), self.connection.context.most_sent)
        return message

    def _encoding(self) -> str:
        """The encoding of the answer's messages; "" for none."""
        return self.head.accepted[0] if self.connection.context.level and self.head.accepted else ""

    def _compress(self, message: list[Buffer], then: Callable[[list[Buffer]], None]) -> None:
        """Call `then` with the framed message, compressed where that makes it smaller, now or later."""
        context = self.connection.context
        work = partial(_framed, message, self._encoding(), context.level)
        if sum(map(len, message)) <= _COMPRESSED_INLINE:
            then(work())
        else:
            self._sending = context.threads.submit(work, partial(self._compressed, then), context.loop)

    def _compressed(self, then: Callable[[list[Buffer]], None], message: list[Buffer] | BaseException) -> None:
        self._sending = None
        if isinstance(message, BaseException):
            self.fail(rpc_error(message))
        elif not self.over:
            then(message)


def _framed(message: list[Buffer], encoding: str, level: int) -> list[Buffer]:
    """The message with its prefix, compressed where that makes it smaller."""
    size = sum(map(len, message))
    small = compress(message, encoding, level)
    if len(small) >= size:
        return [prefix(size), *message]
    return [prefix(len(small), compressed=True), small]


def _result_of(work: Callable[[], bytes]) -> bytes | RpcError:
    try:
        return work()
    except RpcError as error:
        return error
