"""Incoming messages of a stream, up to the end of the stream or of the frontend."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc


class Incoming:
    """The messages of a stream, up to the client's last, or to the frontend's end: then the stream is `cut`.

    Tasks that wait for a message are in `reading`. The frontend cancels them when it is `ending`, which ends the
    stream of messages and not the task. While `is_reading`, nothing else may cancel the task: grpcio 1.85 would leak a
    message that arrives later. The task ends with its call.
    """

    def __init__(self, context: Any, reading: set[asyncio.Task[Any]], ending: Callable[[], bool]) -> None:
        self.cut = False
        self.is_reading = False
        self._context = context
        self._reading = reading
        self._ending = ending

    def __aiter__(self) -> "Incoming":
        return self

    async def __anext__(self) -> bytes:
        task: Any = asyncio.current_task()
        message: Any = grpc.aio.EOF
        if self._ending():
            self.cut = True
        else:
            self._reading.add(task)
            self.is_reading = True
            try:
                message = await self._context.read()
            except (grpc.aio.AbortError, grpc.aio.UsageError) as error:  # the call ended meanwhile
                error.__traceback__ = None  # the call keeps the error
            except asyncio.CancelledError:
                if not self._ending() or task.uncancel():
                    raise
                self.cut = True
            finally:
                self.is_reading = False
                self._reading.discard(task)
                del task  # a task that is cancelled keeps its error, whose traceback keeps this frame
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        read: bytes = message
        return read
