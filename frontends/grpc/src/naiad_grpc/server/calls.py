"""Calls: one for each stream of a connection, from its head to its status."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from naiad.errors import NaiadError
from naiad_grpc.codec import COSTLY_BYTES
from naiad_grpc.inference_intake import CallContext, ExplainedContext
from naiad_grpc.server.methods import Method
from naiad_grpc.server.shared import CallConnection
from naiad_grpc.service.operations import RpcResult, UnaryOperation
from naiad_grpc.statuses import Code, RpcError, rpc_error, too_long
from naiad_grpc.wire import answers
from naiad_grpc.wire.compression import INLINE_BYTES, compress, decompress, largest
from naiad_grpc.wire.heads import CallHead, Metadata
from naiad_grpc.wire.message_reader import PREFIX_BYTES, Framed, MessageReader, prefix
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES
from naiad_kit.frontends.codec_threads import CodecJob

_REQUEST_SECONDS = 30.0
_SLOWEST_BYTES_PER_SECOND = 4096
ENDS_WITHIN = "the request ends within a message"
_COMPRESSED_INLINE = 16384
"""Answers up to this size are compressed on the event loop: that takes less than a millisecond."""


class Call(ABC):
    """What all calls have in common: context, deadline, incoming messages, charges, and the end.

    It is the context of its operation. `api` is the group of its RPC; `over` says that its status is sent, or that the
    client has left.
    """

    __slots__ = (
        "_began",
        "_charged",
        "_connection",
        "_deadline",
        "_head",
        "_id",
        "_job",
        "_reader",
        "_received",
        "_timer",
        "api",
        "over",
    )

    def __init__(self, connection: CallConnection, stream_id: int, head: CallHead[Method], now: float) -> None:
        self.over = False
        self.api = "" if head.method is None else head.method.operation.api
        self._connection = connection
        self._id = stream_id
        self._head = head
        self._began = now
        self._reader: MessageReader | None = None
        self._received = 0
        self._charged = 0
        self._job: CodecJob[bytes] | None = None
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
        return max(0.0, self._deadline - self._connection.context.loop.time())

    def invocation_metadata(self) -> Metadata:
        """The caller's metadata."""
        return self._head.metadata()

    def context(self) -> CallContext:
        """The context for the operation."""
        method = self._head.method
        return ExplainedContext(self) if method is not None and method.explained else self

    # What the connection calls

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

    def is_too_slow(self, now: float) -> bool:
        """Whether what the client owes has taken too long; data gives it a second for each 4 KiB."""
        if not self._is_awaited():
            return False
        return now - self._began > _REQUEST_SECONDS + self._received / _SLOWEST_BYTES_PER_SECOND

    # What calls do

    def _is_awaited(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._reader is not None and not self._reader.is_between_messages

    def fail(self, error: RpcError) -> None:
        """End the call with a status."""
        if not self.over:
            self._end()
            self._connection.send_status(self._id, error)
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
        if self._charged:
            self._connection.context.budget.release(self._charged)
            self._charged = 0
        self._reader = None
        self._connection.forget(self._id)

    def _read(self, content: bytes | memoryview) -> list[Framed]:
        """The messages that this data completes. Raises RpcError or NaiadError."""
        reader = self._reader
        if reader is None:
            reader = self._reader = MessageReader(self._connection.context.most)
        self._received += len(content)
        was_incomplete = reader.missing > 0
        messages = reader.read(content)
        if reader.missing and (messages or not was_incomplete):
            if reader.size > UNCHARGED_BYTES:
                self._charge(reader.size)
            self._connection.http2.expect(self._id, reader.missing)
        return messages

    def _charge(self, size: int) -> None:
        """Charge a message to the byte budget until the end of the call. Raises UnavailableError."""
        self._connection.context.budget.reserve(size)
        self._charged += size

    def _decompress(self, content: Buffer, then: Callable[[bytes], None]) -> None:
        """Call `then` with the message in a compressed one, now or later; errors end the call."""
        context, encoding = self._connection.context, self._head.encoding
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
        if len(message) > self._connection.context.most_sent:
            raise too_long(len(message), self._connection.context.most_sent)
        return message

    def _encoding(self) -> str:
        """The encoding of the answer's messages; "" for none."""
        return self._head.accepted[0] if self._connection.context.level and self._head.accepted else ""

    def _compress(self, message: list[Buffer], then: Callable[[list[Buffer]], None]) -> None:
        """Call `then` with the framed message, compressed where that makes it smaller, now or later."""
        context = self._connection.context
        work = partial(_framed, message, self._encoding(), context.level)
        if sum(map(len, message)) <= _COMPRESSED_INLINE:
            then(work())
        else:
            self._job = context.threads.submit(work, partial(self._compressed, then), context.loop)  # type: ignore[arg-type]

    def _compressed(self, then: Callable[[list[Buffer]], None], message: list[Buffer] | BaseException) -> None:
        self._job = None
        if isinstance(message, BaseException):
            self.fail(rpc_error(message))
        elif not self.over:
            then(message)


class UnaryCall(Call):
    """A call of one message each way, without a task if its operation can do so."""

    __slots__ = ("_body", "_cancel", "_message", "_operation")

    def __init__(
        self,
        connection: CallConnection,
        stream_id: int,
        head: CallHead[Method],
        operation: UnaryOperation,
        now: float,
    ) -> None:
        super().__init__(connection, stream_id, head, now)
        self._operation = operation
        self._message: Framed | None = None
        self._body = b""
        self._cancel: Callable[[], object] | None = None

    def receive(self, content: bytes | memoryview, ended: bool) -> None:
        """Take data of the request; its end begins the work."""
        size = len(content) - PREFIX_BYTES
        if (
            ended
            and self._reader is None
            and 0 <= size <= self._connection.context.most
            and content[:5] == prefix(size)
        ):
            self._start(bytes(content[5:]))  # the usual case
            return
        try:
            messages = self._read(content)
        except (RpcError, NaiadError) as error:
            self.fail(rpc_error(error))
            return
        if len(messages) + (self._message is not None) > 1:
            self.fail(RpcError(Code.UNIMPLEMENTED, "the call has more than one message, and takes one"))
            return
        if messages:
            self._message = messages[0]
        if ended:
            self._complete()

    def _start(self, message: bytes) -> None:
        """Begin the work, in this turn of the event loop or, above its share of calls, in a later one."""
        self._body = message
        if self._connection.take_turn(self._begin):
            self._begin()

    def _begin(self) -> None:
        message, self._body = self._body, b""
        if self.over:
            return
        operation = self._operation
        if operation.begin is not None and len(message) < COSTLY_BYTES:
            try:
                cancel = operation.begin(message, self.context(), self._answer)
            except Exception as error:  # noqa: BLE001 - a bug must not harm the other calls of the connection
                self._answer(rpc_error(error))
                return
            if self.over:
                cancel()
            else:
                self._cancel = cancel
            return
        task = self._connection.context.loop.create_task(self._run(message))
        self._cancel = task.cancel

    def _is_awaited(self) -> bool:
        """Whether the request has not ended; its caller has nothing to wait for."""
        return self._connection.http2.is_open(self._id)

    def sent(self) -> None:
        """The answer has been sent."""

    def cut(self) -> None:
        """A call that has begun may end."""

    def _complete(self) -> None:
        """The request has ended: start with its message."""
        framed, self._message = self._message, None
        if self._reader is not None and not self._reader.is_between_messages:
            self.fail(RpcError(Code.INTERNAL, ENDS_WITHIN))
        elif framed is None:
            self.fail(RpcError(Code.UNIMPLEMENTED, "the call has no complete message"))
        elif framed[0]:
            self._decompress(framed[1], self._start)
        else:
            self._start(framed[1])  # type: ignore[arg-type]

    async def _run(self, message: bytes) -> None:
        try:
            result: RpcResult = [self._checked(await self._operation.answer(message, self.context()))]
        except Exception as error:  # noqa: BLE001 - the caller gets a status for every error
            result = rpc_error(error)
        finally:
            del message
        self._answer(result)

    def _answer(self, result: RpcResult) -> None:
        """Send the result of the work."""
        if self.over:
            return
        if isinstance(result, RpcError):
            self._cancel = None
            self.fail(result)
        elif self._encoding():
            self._compress(result, partial(self._respond, answers.head(self._encoding())))
        else:
            self._respond(answers.HEAD, [prefix(sum(map(len, result))), *result])

    def _respond(self, head: bytes, content: list[Buffer]) -> None:
        self._cancel = None
        self._connection.respond(self._id, head, content)
        self._end()

    def _abandon(self) -> None:
        cancel, self._cancel = self._cancel, None
        self._message, self._body = None, b""
        if cancel is not None:
            cancel()


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
