"""Calls with streams of messages whose operations are generators, each of which runs in a task."""

import asyncio
from contextlib import aclosing

from naiad_grpc.admission import SHUTTING_DOWN
from naiad_grpc.server.methods import Method
from naiad_grpc.server.shared import CallConnection
from naiad_grpc.server.stream_calls import StreamingCall
from naiad_grpc.service.operations import StreamOperation
from naiad_grpc.statuses import Code, RpcError, rpc_error
from naiad_grpc.wire.heads import CallHead


class GeneratorCall(StreamingCall):
    """A call of an operation that is a generator, which runs in a task; it is the iterator of its messages."""

    __slots__ = ("_cut", "_operation", "_task", "_wakeup")

    def __init__(
        self,
        connection: CallConnection,
        stream_id: int,
        head: CallHead[Method],
        operation: StreamOperation,
        now: float,
    ) -> None:
        super().__init__(connection, stream_id, head, now)
        self._operation = operation
        self._cut = False
        self._wakeup: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = connection.context.loop.create_task(self._run())

    def sent(self) -> None:
        """All that was queued has been sent: the generator goes on."""
        self._blocked = False
        self._wake()

    def cut(self) -> None:
        """The server stops: no more messages of the client."""
        self._wake()

    def __aiter__(self) -> "GeneratorCall":
        return self

    async def __anext__(self) -> bytes:
        """The next message of the client."""
        while True:
            if self.connection.context.admission.ending:
                self._cut = True
                raise StopAsyncIteration
            if self._inbox:
                return await self._next()
            if self._ended or self.over:
                raise StopAsyncIteration
            await self._wait()

    async def _next(self) -> bytes:
        compressed, content = self._inbox.popleft()
        self._release_message()
        if not self._inbox:
            self._emptied()
        if not compressed:
            return bytes(content)
        messages: list[bytes] = []
        self._decompress(content, messages.append)
        while not messages:
            if self.over:
                raise StopAsyncIteration
            await self._wait()
        return messages[0]

    def _decompressed(self, then: object, message: bytes | BaseException) -> None:
        super()._decompressed(then, message)  # type: ignore[arg-type]
        self._wake()

    def _advance(self) -> None:
        self._wake()

    async def _run(self) -> None:
        failure: RpcError | None = None
        try:
            async with aclosing(self._operation.answer(self, self.context())) as answered:
                async for message in answered:
                    self._send([self._checked(message)])
                    del message  # the next message may come much later
                    while self._blocked and not self.over:
                        await self._wait()
            if self._cut:
                failure = RpcError(Code.UNAVAILABLE, SHUTTING_DOWN)
        except Exception as error:  # noqa: BLE001 - the caller gets a status for every error
            failure = rpc_error(error)
        self._task = None
        self._finish(failure)

    async def _wait(self) -> None:
        """Return after the next `_wake`."""
        self._wakeup = self.connection.context.loop.create_future()
        try:
            await self._wakeup
        finally:
            self._wakeup = None

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    def _abandon(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
