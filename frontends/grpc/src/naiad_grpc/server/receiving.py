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
        self._memory: memoryview | None = None  # where the next bytes come that belong to a message

    @abstractmethod
    def receive(self, data: bytes | memoryview) -> None:
        """Act on bytes of the client; a view has a part of a long frame, where it belongs."""

    def get_buffer(self, sizehint: int) -> memoryview:
        """Memory for the next bytes."""
        reader = self.http2.reader
        self._memory = None
        if not reader.long_stream:
            return self._scratch
        call = self.calls.get(reader.long_stream)
        memory = None if call is None else call.memory()
        if memory is None:
            return self._scratch
        self._scratch = self.context.short_scratch  # for what comes before the next long frame
        self._memory = memory[: reader.missing]
        return self._memory

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes have been received in that memory."""
        memory = self._memory
        if memory is None:
            self.receive(bytes(self._scratch[:nbytes]))
        else:
            self._memory = None
            self.receive(memory[:nbytes])
