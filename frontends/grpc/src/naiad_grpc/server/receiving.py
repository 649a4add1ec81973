"""Receiving: where the bytes of a client go, those of a long frame into the memory of their message."""

import asyncio
from abc import abstractmethod

from naiad_grpc.http2.connection import Connection
from naiad_grpc.server.calls import Call
from naiad_grpc.server.shared import ListenerContext


class Receiver(asyncio.BufferedProtocol):
    """Receives the bytes of one client; `calls` are those that are not over, by their streams.

    Most bytes come into memory that all connections share. While the rest of a long frame of DATA comes, the system
    writes it where it belongs, which saves a copy.
    """

    def __init__(self, context: ListenerContext) -> None:
        self.context = context
        self.http2: Connection
        self.calls: dict[int, Call] = {}
        self._scratch = context.scratch
        self._in_place = False

    @abstractmethod
    def receive(self, data: bytes | memoryview) -> None:
        """Act on bytes of the client; a view has a part of a long frame, where it belongs."""

    def get_buffer(self, sizehint: int) -> memoryview:
        """Memory for the next bytes."""
        memory = self._memory_of_message() if self.http2.reader.long_stream else None
        self._in_place = memory is not None
        if memory is None:
            return self._scratch
        self._scratch = self.context.short_scratch  # for what comes before the next long frame
        return memory

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes have been received in that memory."""
        memory = self._memory_of_message() if self._in_place else None
        self.receive(bytes(self._scratch[:nbytes]) if memory is None else memory[:nbytes])

    def _memory_of_message(self) -> memoryview | None:
        """Where the rest of the current long frame belongs, None if that is not known."""
        reader = self.http2.reader
        call = self.calls.get(reader.long_stream)
        memory = None if call is None else call.memory()
        return None if memory is None else memory[: reader.missing]
