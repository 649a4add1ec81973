"""Tasks of a stream: one reads requests while there is room, one takes responses."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from naiad_grpc.codec import COSTLY_BYTES
from naiad_grpc.statuses import rpc_error
from naiad_grpc.streaming import InferStream


class Signal:
    """Wakes the one task that waits for it; a signal without a waiting task is lost."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Wake the task, however often this is called before it runs."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self) -> None:
        """Return after the next `set`."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None


async def run_stream(stream: InferStream, messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Feed the messages to the stream, and yield its responses.

    Raises RpcError. Closing the generator cancels all requests in flight.
    """
    room, ready = Signal(), Signal()
    stream.follow(ready.set, room.set)
    reading = asyncio.create_task(_read(stream, messages, room))
    try:
        while True:
            message = stream.take()
            if message is not None:
                yield b"".join(message)
            elif stream.over:
                return
            else:
                await ready.wait()
    finally:
        stream.cancel()
        if not getattr(messages, "is_reading", False):
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(stream: InferStream, messages: AsyncIterator[bytes], room: Signal) -> None:
    try:
        async for message in messages:
            decoded = await stream.decode(message) if len(message) >= COSTLY_BYTES else None
            stream.feed(message, decoded)
            del message, decoded  # the next message may come much later
            while stream.full:
                await room.wait()
            if stream.over:
                break
    except Exception as error:  # noqa: BLE001 - the caller of the stream gets the error
        stream.fail(rpc_error(error))
    finally:
        stream.finish()
