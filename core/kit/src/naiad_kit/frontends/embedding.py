"""Frontends without a listener: what a plugin needs that serves HTTP or gRPC by another server's connections."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from naiad.server import ServerApi

Message = MutableMapping[str, Any]
"""A scope, or an event, of ASGI."""

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Message, Receive, Send], Awaitable[None]]
"""An application of ASGI 3."""


class StatusError(Exception):
    """The gRPC status that ends a call: its number on the wire, and its message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Call(Protocol):
    """A call as its RPC sees it."""

    def time_remaining(self) -> float | None:
        """The seconds until the caller's deadline, None without one."""
        ...

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """The caller's metadata; its keys are in lower case."""
        ...


@dataclass(frozen=True, slots=True)
class Rpc:
    """An RPC of one message each way: `path` is `/package.Service/Method`. `answer` raises StatusError."""

    path: str
    answer: Callable[[bytes, Call], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class StreamRpc:
    """An RPC with streams of messages. `answer` raises StatusError; its generator is closed when the caller leaves."""

    path: str
    answer: Callable[[AsyncIterator[bytes], Call], AsyncGenerator[bytes, None]]


@runtime_checkable
class EmbeddedHttp(Protocol):
    """A frontend that serves HTTP, and can be an ASGI application instead."""

    def application(self, server: ServerApi) -> AsgiApp:
        """The application for that server, for the event loop that the server runs on.

        Raises InvalidArgumentError for an invalid option of the server.
        """


@runtime_checkable
class EmbeddedGrpc(Protocol):
    """A frontend that serves gRPC, and can be its RPCs alone instead."""

    def rpcs(self, server: ServerApi) -> Sequence[Rpc | StreamRpc]:
        """Every RPC for that server, for the event loop that the server runs on.

        Raises InvalidArgumentError for an invalid option of the server.
        """
