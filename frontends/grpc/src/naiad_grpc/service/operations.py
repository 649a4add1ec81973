"""RPC operations, independent of the transport: path, group, and a function from bytes to bytes."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from google.protobuf.message import DecodeError

from naiad_grpc.codec import RequestMessage
from naiad_grpc.messages import rpcs
from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire.message_reader import Memory
from naiad_kit.buffers import Buffer

Answer = Callable[[Any], Awaitable[Any]]
"""From a message to a message. Raises NaiadError or RpcError."""

StreamAnswer = Callable[[AsyncIterator[Any]], AsyncGenerator[Any, None]]
"""From messages to messages. Raises NaiadError or RpcError."""


RpcResult = list[Buffer] | RpcError
"""The buffers of a message, or the status that ends the call instead."""

Begin = Callable[[RequestMessage, Any, Callable[[RpcResult], None], Any], Callable[[], None]]
"""Begins a call with a message, its context, and what was decoded of the message before, None for nothing.

Calls back once with the result, perhaps before it returns, and returns a function that cancels the call.
"""

Decoding = Callable[[], Awaitable[Any]]

Decode = Callable[[RequestMessage], tuple[Any, Decoding | None]]
"""From a large message to what is decoded of it, and what decodes it where that takes long; None for neither."""


class MessageStream(Protocol):
    """A call with streams in both directions, without tasks: messages in, messages out."""

    def follow(self, on_ready: Callable[[], None], on_room: Callable[[], None]) -> None:
        """Call `on_ready` when there is something new to `take` or the stream is over.

        And call `on_room` when the stream may be no longer `full`.
        """
        ...

    @property
    def full(self) -> bool:
        """Whether no more messages may be fed now."""
        ...

    @property
    def over(self) -> bool:
        """Whether there will be no further message."""
        ...

    def feed(self, message: RequestMessage, decoded: Any = None) -> None:
        """Take a message in; `decoded` comes from `decode`."""
        ...

    async def decode(self, message: RequestMessage) -> Any:
        """The decoded form of a large message, whose decoding may take long."""
        ...

    def finish(self) -> None:
        """The client has no more messages."""
        ...

    def take(self) -> list[Buffer] | None:
        """The buffers of the next message to send, None if there is none now. Raises RpcError if the stream failed."""
        ...

    def cancel(self) -> None:
        """The client no longer waits. May be called again."""
        ...


@dataclass(frozen=True, slots=True)
class UnaryOperation:
    """An RPC of one message each way. `api` is its group for restrictions.

    `answer` takes the bytes of a message and the call's context, returns the bytes of a message, and raises NaiadError
    or RpcError. `begin` does the same without a task and without joining the buffers of the answer; `decode` is for
    messages of COSTLY_BYTES or more. `memory` is where large messages that come in parts are put together.
    """

    path: str
    api: str
    answer: Callable[[bytes, Any], Awaitable[bytes]]
    begin: Begin | None = None
    decode: Decode | None = None
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class StreamOperation:
    """An RPC with a stream in either direction or both; `answer` is as in UnaryOperation, with iterators of bytes.

    The returned generator is closed when the client stops reading. `open` does the same without tasks, and may raise
    RpcError. `memory` is as in UnaryOperation.
    """

    path: str
    api: str
    answer: Callable[[AsyncIterator[bytes], Any], AsyncGenerator[bytes, None]]
    open: Callable[[Any], MessageStream] | None = None
    memory: Memory | None = None


Operation = UnaryOperation | StreamOperation


def operation(name: str, api: str, answer: Answer) -> UnaryOperation:
    """The RPC of that name of the inference service, answered from message to message."""
    (rpc,) = (each for each in rpcs() if each.name == name)
    return unary(rpc.path, api, rpc.request, answer)


def unary(path: str, api: str, request: Any, answer: Answer) -> UnaryOperation:
    """An RPC whose requests are of the class `request`."""
    return UnaryOperation(path, api, partial(_answer, request, answer))


def stream(path: str, api: str, request: Any, answer: StreamAnswer) -> StreamOperation:
    """An RPC with streams whose requests are of the class `request`."""
    return StreamOperation(path, api, partial(_answer_stream, request, answer))


async def _answer(request: Any, answer: Answer, message: bytes, _context: Any) -> bytes:
    answered: bytes = (await answer(_read(request, message))).SerializeToString()
    return answered


async def _answer_stream(
    request: Any, answer: StreamAnswer, messages: AsyncIterator[bytes], _context: Any
) -> AsyncGenerator[bytes, None]:
    requests = (_read(request, message) async for message in messages)
    async with aclosing(answer(requests)) as answered:
        async for response in answered:
            yield response.SerializeToString()


def _read(request: Any, message: bytes) -> Any:
    try:
        return request.FromString(message)
    except DecodeError as error:
        raise RpcError(
            Code.INVALID_ARGUMENT, f"the message is not a valid {request.DESCRIPTOR.full_name}: {error}"
        ) from error
