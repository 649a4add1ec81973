"""Calls with streams of messages: what all have in common, and those of operations without tasks."""

import asyncio
from abc import abstractmethod
from collections import deque

from naiad.errors import NaiadError
from naiad_grpc.admission import SHUTTING_DOWN
from naiad_grpc.codec import COSTLY_BYTES, RequestMessage
from naiad_grpc.server.calls import ENDS_WITHIN, Call
from naiad_grpc.server.methods import Method
from naiad_grpc.server.shared import CallConnection
from naiad_grpc.service.operations import MessageStream, StreamOperation
from naiad_grpc.statuses import Code, RpcError, rpc_error
from naiad_grpc.wire import answers
from naiad_grpc.wire.heads import CallHead
from naiad_grpc.wire.message_reader import Framed, prefix
from naiad_kit.buffers import Buffer


class StreamingCall(Call):
    """A call with any number of messages: keeps their order, and the windows of both directions.

    While messages wait in the inbox, the client gets no more window. `_blocked` while an answer waits for a window of
    the client, or is being compressed.
    """

    __slots__ = ("_blocked", "_ended", "_head_sent", "_inbox", "_waiting")

    def __init__(self, connection: CallConnection, stream_id: int, head: CallHead[Method], now: float) -> None:
        super().__init__(connection, stream_id, head, now)
        self._inbox: deque[Framed] = deque()
        self._waiting = 0  # the bytes in the budget that came while messages waited
        self._ended = False
        self._blocked = False
        self._head_sent = False

    def receive(self, content: bytes | memoryview, ended: bool) -> None:
        """Take data of the request."""
        if self.over:
            return
        before = self._reader is None or self._reader.is_between_messages
        try:
            messages = self._read(content)
        except (RpcError, NaiadError) as error:
            self.fail(rpc_error(error))
            return
        if messages or before:  # a message has begun: its time starts
            self._began, self._received = self.connection.context.loop.time(), len(content)
        if ended and self._reader is not None and not self._reader.is_between_messages:
            self.fail(RpcError(Code.INTERNAL, ENDS_WITHIN))
            return
        was_waiting = bool(self._inbox)
        self._inbox.extend(messages)
        self._ended = self._ended or ended
        self._advance()
        if self._inbox and not self.over:
            if not was_waiting:
                self.connection.http2.pause(self._id)
            self._hold(len(content))

    def fail(self, error: RpcError) -> None:
        """End the call with a status, after what was sent."""
        if not self.over:
            self.connection.send_status(self._id, error, self._head_sent)
            self._end()
            self._abandon()

    def _expire(self) -> None:
        if self._blocked and not self.over:  # the status would wait behind data that the client does not read
            self.connection.http2.discard(self._id)
        super()._expire()

    def _hold(self, size: int) -> None:
        """Charge bytes that wait in the inbox: their window is shut, but there may be many such calls."""
        try:
            self.connection.context.budget.reserve(size)
            self._waiting += size
        except NaiadError as error:
            self.fail(rpc_error(error))

    def _release_waiting(self) -> None:
        """Nothing waits in the inbox any more."""
        self.connection.context.budget.release(self._waiting)
        self._waiting = 0

    def _end(self) -> None:
        super()._end()
        self._inbox.clear()
        self._release_waiting()

    def _is_awaited(self) -> bool:
        """Whether a message has begun and not ended.

        While messages wait, the client gets a window for the rest of a message, but none for that of its prefix.
        """
        reader = self._reader
        return reader is not None and (reader.missing > 0 or not (self._inbox or reader.is_between_messages))

    @abstractmethod
    def _advance(self) -> None:
        """Pass messages of the inbox on, as far as possible."""

    def _emptied(self) -> None:
        """The inbox is empty: the client may send more."""
        if not self.over:
            if self._waiting:  # the client had no window: the time of its message starts now
                self._release_waiting()
                self._began, self._received = self.connection.context.loop.time(), 0
            self.connection.http2.resume(self._id)

    def _release_message(self) -> None:
        """The messages that were charged have been passed on, but for the one that is not complete."""
        if self._charged:
            ahead = 0 if self._reader is None else self._reader.held
            self.connection.context.budget.release(self._charged - ahead)
            self._charged = ahead

    def _send(self, message: list[Buffer]) -> None:
        """Send a message; `_blocked` until `sent` unless all of it can be sent now."""
        encoding = self._encoding()
        if not self._head_sent:
            self._head_sent = True
            self.connection.send_head(self._id, answers.head(encoding) if encoding else answers.HEAD)
        if encoding:
            self._blocked = True
            self._compress(message, self._send_compressed)
        else:
            self._blocked = not self.connection.send_message(self._id, [prefix(sum(map(len, message))), *message])

    def _send_compressed(self, content: list[Buffer]) -> None:
        self._blocked = not self.connection.send_message(self._id, content)
        if not self._blocked:
            self.sent()

    def _finish(self, failure: RpcError | None) -> None:
        """End the call well, or with a status."""
        if failure is not None:
            self.fail(failure)
        elif not self.over:
            if not self._head_sent:
                self._head_sent = True
                self.connection.send_head(self._id, answers.HEAD)
            self.connection.send_end(self._id)
            self._end()


class MessageStreamCall(StreamingCall):
    """A call of an operation that takes and gives messages without tasks."""

    __slots__ = ("_cut", "_decoding", "_pumping", "_stream")

    def __init__(
        self,
        connection: CallConnection,
        stream_id: int,
        head: CallHead[Method],
        operation: StreamOperation,
        now: float,
    ) -> None:
        """Raises RpcError."""
        super().__init__(connection, stream_id, head, now)
        assert operation.open is not None  # noqa: S101 - for the type checker
        self._cut = False
        self._pumping = False
        self._decoding: asyncio.Task[None] | None = None
        self._stream: MessageStream = operation.open(self.context())
        self._stream.follow(self._pump, self._advance)

    def sent(self) -> None:
        """All that was queued has been sent: take the next message."""
        self._blocked = False
        self._pump()

    def cut(self) -> None:
        """The server stops: no more messages of the client, but the answers to those that came."""
        if not (self.over or self._ended):
            self._cut = self._ended = True
            self._inbox.clear()
            self._stream.finish()

    def _advance(self) -> None:
        if self._is_busy():
            return
        if self._inbox:
            if self.connection.take_turn(self._feed_next):
                self._feed_next()
        elif self._ended and not self.over:
            self._stream.finish()

    def _is_busy(self) -> bool:
        return self.over or self._stream.full or self._job is not None or self._decoding is not None

    def _feed_next(self) -> None:
        """Feed one message, for which there is a turn, and go on with the next."""
        if self._is_busy() or not self._inbox:
            return
        compressed, content = self._inbox.popleft()
        if compressed:
            self._decompress(content, self._feed)
        else:
            self._feed(content)  # type: ignore[arg-type]

    def _feed(self, message: RequestMessage) -> None:
        if len(message) >= COSTLY_BYTES:
            self._decoding = self.connection.context.loop.create_task(self._decode(message))
            return
        self._release_message()
        self._stream.feed(message)
        self._fed()

    async def _decode(self, message: RequestMessage) -> None:
        self._release_message()
        decoded = await self._stream.decode(message)
        self._decoding = None
        if not self.over:
            self._stream.feed(message, decoded)
            del message, decoded
            self._fed()

    def _fed(self) -> None:
        if self.over:
            return
        if not self._inbox:
            self._emptied()
        self._advance()

    def _pump(self) -> None:
        """Send what the stream has ready, until an answer must wait."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while not (self.over or self._blocked):
                message = self._stream.take()
                if message is not None:
                    self._send(message)
                    continue
                if self._stream.over:
                    self._finish(RpcError(Code.UNAVAILABLE, SHUTTING_DOWN) if self._cut else None)
                return
        except RpcError as error:
            self.fail(rpc_error(error))
        finally:
            self._pumping = False

    def _abandon(self) -> None:
        decoding, self._decoding = self._decoding, None
        if decoding is not None:
            decoding.cancel()
        self._stream.follow(_nothing, _nothing)
        self._stream.cancel()

    def _finish(self, failure: RpcError | None) -> None:
        super()._finish(failure)
        self._abandon()


def _nothing() -> None:
    """Do nothing: the call is over."""
