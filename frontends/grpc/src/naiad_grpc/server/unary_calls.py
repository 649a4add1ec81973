"""Unary calls: one message each way, without a task where the operation of the call needs none."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from naiad.errors import NaiadError
from naiad_grpc.codec import COSTLY_BYTES, RequestMessage
from naiad_grpc.server.calls import ENDS_WITHIN, Call
from naiad_grpc.server.methods import Method
from naiad_grpc.server.shared import CallConnection
from naiad_grpc.service.operations import Decoding, RpcResult, UnaryOperation
from naiad_grpc.statuses import Code, RpcError, rpc_error
from naiad_grpc.wire import answers
from naiad_grpc.wire.heads import CallHead
from naiad_grpc.wire.message_reader import PREFIX, PREFIX_BYTES, Framed, prefix
from naiad_kit.buffers import Buffer, total_size
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES


class UnaryCall(Call):
    """A call of one message each way, without a task if its operation can do so."""

    __slots__ = ("_body", "_cancel", "_message", "_operation")
    _takes_one = True

    def __init__(
        self,
        connection: CallConnection,
        stream_id: int,
        head: CallHead[Method],
        operation: UnaryOperation,
        now: float,
    ) -> None:
        Call.__init__(self, connection, stream_id, head, now)  # a tenth of the time of `super()`
        self._operation = operation
        self._message: Framed | None = None
        self._body: RequestMessage = b""
        self._cancel: Callable[[], object] | None = None

    def receive(self, content: bytes | memoryview, ended: bool) -> None:
        """Take data of the request; its end begins the work."""
        if ended and self._reader is None and len(content) >= PREFIX_BYTES:
            flag, size = PREFIX.unpack_from(content)
            if not flag and size == len(content) - PREFIX_BYTES <= min(UNCHARGED_BYTES, self.connection.context.most):
                self._body = bytes(content[PREFIX_BYTES:])  # the usual case: one message, which is not compressed
                if self.connection.take_turn(self._begin):
                    self._begin()
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

    def _start(self, message: RequestMessage) -> None:
        """Begin the work, in this turn of the event loop or, above its share of calls, in a later one."""
        self._body = message
        if self.connection.take_turn(self._begin):
            self._begin()

    def _begin(self, decoded: Any = None) -> None:
        """Begin the work with the message, which may be `decoded` already."""
        message, self._body = self._body, b""
        if self.over:
            return
        begin, decode = self._operation.begin, self._operation.decode
        if begin is None:
            self._create_task(self._run(bytes(message)))
            return
        if len(message) >= COSTLY_BYTES and decode is not None and decoded is None:
            decoded, decoding = decode(message)
            if decoding is not None:
                self._create_task(self._decode(decoding, message))
                return
        try:
            cancel = begin(message, self.context(), self._answer, decoded)
        except Exception as error:  # noqa: BLE001 - a bug must not harm the other calls of the connection
            self._answer(rpc_error(error))
            return
        if self.over:
            cancel()
        else:
            self._cancel = cancel

    def _create_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._cancel = self.connection.context.loop.create_task(work).cancel

    async def _decode(self, decoding: Decoding, message: RequestMessage) -> None:
        decoded = await decoding()
        self._body = message
        self._begin(decoded)

    def _is_awaited(self) -> bool:
        """Whether the request has not ended; its caller has nothing to wait for."""
        return self.connection.http2.is_open(self._id)

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
        connection = self.connection
        if isinstance(result, RpcError):
            self._cancel = None
            self.fail(result)
        elif connection.context.level and self._encoding():
            self._compress(result, partial(self._respond, answers.head(self._encoding())))
        else:
            size = total_size(result)
            connection.respond(self._id, answers.HEAD, [prefix(size), *result], size + PREFIX_BYTES)
            self._cancel = None
            self._end()

    def _respond(self, head: bytes, content: list[Buffer]) -> None:
        self._send(head, content, total_size(content))

    def _send(self, head: bytes, content: list[Buffer], size: int) -> None:
        self._cancel = None
        self.connection.respond(self._id, head, content, size)
        self._end()

    def _abandon(self) -> None:
        cancel, self._cancel = self._cancel, None
        self._message, self._body = None, b""
        if cancel is not None:
            cancel()
