"""The RPCs as handlers of `grpc.aio`: what is restricted, what is in flight, and what an error becomes.

A call goes from grpcio to the function that answers it through one function of ours. Whether it may be made is decided
where grpcio looks its handler up, so that one that may pays nothing for it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import grpc

from naiad.byte_budget import UNCHARGED_BYTES, ByteBudget
from naiad.explaining import EXPLAIN_HEADER, is_asked
from naiad_grpc.inference_intake import ExplainedContext
from naiad_grpc.service.operations import Operation, UnaryOperation
from naiad_grpc.statuses import Code, RpcError, rpc_error
from naiad_grpc.transport.incoming import Incoming
from naiad_kit.frontends.restrictions import RestrictedApis

SHUTTING_DOWN = "GRPC server is shutting down and has stopped accepting new requests."
HEADER_PREFIX = "triton-grpc-protocol-"
_ALWAYS_ANSWERED = frozenset(("health", "metadata"))
"""The groups of RPCs that are answered above the limit of calls in flight."""
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds the handler of each call, and knows how many calls are in flight."""

    def __init__(self, operations: Iterable[Operation], settings: Mapping[str, Any], budget: ByteBudget) -> None:
        """Raises InvalidArgumentError for a bad rule of `--grpc-restricted-protocol`."""
        restricted: Sequence[str] = settings["grpc-restricted-protocol"]
        self._budget = budget
        self._most_calls: int = settings["grpc-max-calls"]
        self._restrictions = RestrictedApis("--grpc-restricted-protocol", restricted, HEADER_PREFIX)
        self._restricted = bool(restricted)
        found = list(operations)
        self._apis = {each.path: each.api for each in found}
        self._handlers = {each.path: self._handler(each, each.answer) for each in found}
        self._explained = {each.path: self._handler(each, _explained(each.answer)) for each in found}
        self._in_flight = 0
        self._ending = False
        self._idle = asyncio.Event()
        self._reading: set[asyncio.Task[Any]] = set()

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a call; None, which grpcio answers with UNIMPLEMENTED, for an RPC that there is not."""
        handlers = self._explained if _asks(handler_call_details.invocation_metadata) else self._handlers
        handler = handlers.get(handler_call_details.method)
        if handler is not None and (self._ending or self._restricted or self._in_flight >= self._most_calls):
            return self._refusal(handler_call_details) or handler
        return handler

    @property
    def calls_in_flight(self) -> int:
        """How many calls have begun and not ended."""
        return self._in_flight

    def end(self) -> None:
        """Take no more calls; streams get no more messages, as if their clients had no more."""
        self._ending = True
        for task in self._reading:
            task.cancel()

    async def drained(self) -> None:
        """Wait, once it ends, until no call is in flight."""
        if self._in_flight:
            await self._idle.wait()

    def _refusal(self, details: Any) -> Any:
        """The handler that refuses a call which may not be made, None for one that may."""
        if self._ending:
            return _refusing(SHUTTING_DOWN)
        api = self._apis[details.method]
        if self._in_flight >= self._most_calls and api not in _ALWAYS_ANSWERED:
            return _refusing(
                f"{self._in_flight} calls are in flight, and --grpc-max-calls allows {self._most_calls}; try again "
                "later, or raise the option"
            )
        metadata = ((key.encode(), _as_bytes(value)) for key, value in details.invocation_metadata)
        wanted = self._restrictions.refusal(api, metadata)
        return _refusing(f"This protocol is restricted, expecting header '{wanted}'") if wanted else None

    def _handler(self, operation: Operation, answer: Callable[..., Any]) -> Any:
        if isinstance(operation, UnaryOperation):
            return grpc.unary_unary_rpc_method_handler(self._unary(answer))
        return grpc.stream_stream_rpc_method_handler(self._stream(answer))

    def _unary(self, answer: Callable[..., Any]) -> Callable[[bytes, Any], Coroutine[Any, Any, bytes]]:
        async def handler(message: bytes, context: Any) -> bytes:
            self._in_flight += 1
            try:
                if len(message) > UNCHARGED_BYTES:
                    self._charge(self._budget.reserve, len(message))
                answered: bytes = await answer(message, context)
                if len(answered) > UNCHARGED_BYTES:
                    self._charge(self._budget.add, len(answered))
                return answered
            except Exception as error:  # noqa: BLE001 - the caller gets a status whatever breaks
                failure = rpc_error(error)
            finally:
                self._left()
                del message
            await _end_with(failure, context)
            return b""

        return handler

    def _stream(self, answer: Callable[..., Any]) -> Callable[[Any, Any], Coroutine[Any, Any, None]]:
        async def handler(_messages: Any, context: Any) -> None:
            self._in_flight += 1
            incoming = Incoming(context, self._reading, lambda: self._ending)
            try:
                async with aclosing(answer(incoming, context)) as answered:
                    async for message in answered:
                        await context.write(message)
                        del message  # the next one may be long in coming
                failure = RpcError(Code.UNAVAILABLE, SHUTTING_DOWN) if incoming.cut else None
            except grpc.aio.InternalError:  # the caller left while a message was on its way to it
                failure = None
            except Exception as error:  # noqa: BLE001 - as above
                failure = rpc_error(error)
            finally:
                self._left()
            if failure is not None:
                await _end_with(failure, context)

        return handler

    def _charge(self, take: Callable[[int], None], size: int) -> None:
        """Take that many bytes of the budget until the task ends in which grpcio has called us.

        It holds the request until it has sent the response. Raises UnavailableError where `take` does.
        """
        task: Any = asyncio.current_task()
        take(size)
        task.add_done_callback(lambda _: self._budget.release(size))

    def _left(self) -> None:
        self._in_flight -= 1
        if self._ending and not self._in_flight:
            self._idle.set()


def _asks(metadata: Sequence[tuple[str, str | bytes]]) -> bool:
    """Whether the caller asks for explanations; grpcio has its metadata at hand here, and makes it anew later."""
    for key, value in metadata:
        if key == EXPLAIN_HEADER:
            return is_asked(value)
    return False


def _explained(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The same, under a context that says that its caller asks for explanations."""
    return lambda given, context: answer(given, ExplainedContext(context))


async def _end_with(error: RpcError, context: Any) -> None:
    """End a call with a status. grpcio raises its own error again once the handler returns.

    The call keeps that error: the frames of its traceback would keep the call, and all that they refer to.
    """
    try:
        await context.abort(_CODES[error.code], error.message)
    except (grpc.aio.AbortError, grpc.aio.InternalError) as aborted:  # the latter when the caller has left meanwhile
        aborted.__traceback__ = None


def _refusing(message: str) -> Any:
    """A handler that refuses a call at once, without waiting for a message of it."""

    async def refuse(_messages: Any, context: Any) -> None:
        await _end_with(RpcError(Code.UNAVAILABLE, message), context)

    return grpc.stream_stream_rpc_method_handler(refuse)


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
