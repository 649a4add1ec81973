"""RPC handlers of `grpc.aio`: restrictions, limits of calls in flight, and statuses of errors.

Each call passes one function of ours between grpcio and its operation. Refusals are decided in grpcio's lookup of the
handler, so that an accepted call costs nothing more.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import grpc

from naiad.extend import requests_stage
from naiad_grpc.admission import SHUTTING_DOWN, Admission
from naiad_grpc.grpcio.incoming import Incoming
from naiad_grpc.inference_intake import ExplainedContext
from naiad_grpc.service.operations import Operation, UnaryOperation
from naiad_grpc.statuses import Code, RpcError, rpc_error
from naiad_grpc.unfinished import UnfinishedCall
from naiad_kit.explaining import EXPLAIN_HEADER
from naiad_kit.frontends.api_keys import ApiKeys
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES, ByteBudget

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Looks up the handler of each call, and counts the calls in flight."""

    def __init__(
        self,
        operations: Iterable[Operation],
        settings: Mapping[str, Any],
        budget: ByteBudget,
        keys: ApiKeys | None = None,
    ) -> None:
        """Raises InvalidArgumentError for a bad rule of `--grpc-restricted-protocol`."""
        self._budget = budget
        self._admission = Admission(settings, keys)
        served = list(operations)
        self._apis = {each.path: each.api for each in served}
        self._handlers = {each.path: self._handler(each, each.answer) for each in served}
        self._explained = {each.path: self._handler(each, _explained(each.answer)) for each in served}
        self._reading: set[asyncio.Task[Any]] = set()
        self._incomplete = {each.path: UnfinishedCall(each.path, is_complete=False) for each in served}
        self._open: dict[asyncio.Task[Any], UnfinishedCall | None] = {}  # None for those whose answer is not sent yet

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a call; None, which grpcio answers with UNIMPLEMENTED, for an unknown RPC."""
        handlers = self._explained if _asks(handler_call_details.invocation_metadata) else self._handlers
        handler = handlers.get(handler_call_details.method)
        if handler is None:
            return None
        refusal = None if self._admission.is_open else self._refusal(handler_call_details)
        if refusal is not None:
            return refusal
        task = self._task()
        self._open[task] = self._incomplete[handler_call_details.method]
        task.add_done_callback(self._forget)
        return handler

    @property
    def calls_in_flight(self) -> int:
        """The number of calls whose answers are not sent, those included whose requests are incomplete."""
        return len(self._open)

    def end(self) -> None:
        """Accept no more calls; streams receive no more messages, as if their clients had closed them."""
        self._admission.end()
        for task in self._reading:
            task.cancel()

    async def drained(self) -> None:
        """Wait, once it ends, until no call is in flight."""
        while self._open:
            await asyncio.wait(list(self._open))

    def unfinished(self) -> list[UnfinishedCall]:
        """The calls in flight that have not been answered."""
        return [each for each in self._open.values() if each is not None]

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._open.pop(task, None)

    def _begin(self, call: UnfinishedCall, api: str) -> None:
        """The request of a call is whole, or a stream begins."""
        self._open[self._task()] = call
        self._admission.begin(api)

    def _end(self, api: str) -> None:
        """A call is answered."""
        self._open[self._task()] = None
        self._admission.end_call(api)

    @staticmethod
    def _task() -> asyncio.Task[Any]:
        """The task of the current call: grpcio has one for each, which ends when the answer is sent."""
        task: Any = asyncio.current_task()
        return task  # type: ignore[no-any-return]

    def _refusal(self, details: Any) -> Any:
        """The handler that refuses a call, None for a permitted call."""
        metadata = ((key.encode(), _as_bytes(value)) for key, value in details.invocation_metadata)
        refusal = self._admission.refusal(self._apis[details.method], metadata)
        return _refusing(refusal) if refusal else None

    def _handler(self, operation: Operation, answer: Callable[..., Any]) -> Any:
        if isinstance(operation, UnaryOperation):
            return grpc.unary_unary_rpc_method_handler(self._unary(operation, answer))
        return grpc.stream_stream_rpc_method_handler(self._stream(operation, answer))

    def _unary(
        self, operation: Operation, answer: Callable[..., Any]
    ) -> Callable[[bytes, Any], Coroutine[Any, Any, bytes]]:
        api, call = operation.api, UnfinishedCall(operation.path, is_complete=True)

        async def handler(message: bytes, context: Any) -> bytes:
            self._begin(call, api)
            try:
                if len(message) > UNCHARGED_BYTES:
                    self._charge(self._budget.reserve, len(message))
                answered: bytes = await answer(message, context)
                if len(answered) > UNCHARGED_BYTES:
                    self._charge(self._budget.add, len(answered))
                return answered
            except Exception as error:  # noqa: BLE001 - the caller gets a status for every error
                failure = rpc_error(error)
            finally:
                self._end(api)
                del message
            await _end_with(failure, context)
            return b""

        return handler

    def _stream(
        self, operation: Operation, answer: Callable[..., Any]
    ) -> Callable[[Any, Any], Coroutine[Any, Any, None]]:
        api, call = operation.api, UnfinishedCall(operation.path, is_complete=True)

        async def handler(_messages: Any, context: Any) -> None:
            self._begin(call, api)
            incoming = Incoming(context, self._reading, lambda: self._admission.ending)
            try:
                async with aclosing(answer(incoming, context)) as answered:
                    async for message in answered:
                        await context.write(message)
                        del message  # the next message may come much later
                failure = RpcError(Code.UNAVAILABLE, SHUTTING_DOWN) if incoming.cut else None
            except grpc.aio.InternalError:  # the caller disconnected during a write
                failure = None
            except Exception as error:  # noqa: BLE001 - as above
                failure = rpc_error(error)
            finally:
                self._end(api)
            if failure is not None:
                await _end_with(failure, context)

        return handler

    def _charge(self, take: Callable[[int], None], size: int) -> None:
        """Charge that many bytes to the budget until the end of the task in which grpcio has called us.

        The task holds the request until the response is sent. Raises UnavailableError if `take` does.
        """
        task: Any = asyncio.current_task()
        take(size)
        task.add_done_callback(lambda _: self._budget.release(size))


def _asks(metadata: Sequence[tuple[str, str | bytes]]) -> bool:
    """Whether the caller requests explanations; grpcio has the metadata ready here, and would build it again later."""
    for key, value in metadata:
        if key == EXPLAIN_HEADER:
            return requests_stage(value)
    return False


def _explained(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The same operation with a context that requests explanations."""
    return lambda message, context: answer(message, ExplainedContext(context))


async def _end_with(error: RpcError, context: Any) -> None:
    """End a call with a status. grpcio raises its own error again once the handler returns.

    The call keeps that error: the frames of its traceback would keep the call, and all that they refer to.
    """
    try:
        await context.abort(_CODES[error.code], error.message)
    except (grpc.aio.AbortError, grpc.aio.InternalError) as aborted:  # the latter when the caller has left meanwhile
        aborted.__traceback__ = None


def _refusing(refusal: RpcError) -> Any:
    """A handler that refuses a call at once, without waiting for a message."""

    async def refuse(_messages: Any, context: Any) -> None:
        await _end_with(refusal, context)

    return grpc.stream_stream_rpc_method_handler(refuse)


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
