"""Lines of the access log for gRPC: one for each call, and one for each request of a stream of inference."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from naiad.errors import NaiadError
from naiad.types import Request
from naiad_grpc.codec import ResponseForm
from naiad_grpc.inference_intake import CallContext, peer_of
from naiad_grpc.service.operations import Operation, RpcResult, UnaryOperation
from naiad_grpc.statuses import Code, RpcError, code_of
from naiad_grpc.streaming_requests import Call, Outcome, StreamRequest
from naiad_kit.access_log import NO_PHASES, AccessLog, access_log_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_KEPT = 1024
_OK, _CANCELLED = Code.OK.name, Code.CANCELLED.name


class Lines:
    """Makes the lines of one server, and keeps what the lines of its latest clients have in common."""

    def __init__(self, access: AccessLog) -> None:
        self._access = access
        self._callers: dict[tuple[str, str, str, int], str] = {}

    def follow(self, use: "Callable[[Lines | None], object]") -> None:
        """Call `use` with these lines while the access log is switched on, and with None while it is not."""
        self._access.follow(lambda enabled: use(self if enabled else None))

    def of_call(self, context: CallContext, message: bytes, answered: Callable[[RpcResult], None]) -> "CallLine":
        """The line of one ModelInfer, which is passed the result in place of `answered`."""
        return CallLine(self, context, len(message), answered)

    def of_stream(self, context: CallContext) -> "Callable[..., LoggedStreamRequest]":
        """Makes the requests of one ModelStreamInfer, each with a line."""
        return partial(LoggedStreamRequest, self, context)

    def logged(self, operation: Operation) -> Operation:
        """The operation with a line for each call."""
        name = operation.path.rpartition("/")[2]
        if isinstance(operation, UnaryOperation):
            return replace(operation, answer=partial(self._answer, name, operation.answer))
        return replace(operation, answer=partial(self._answer_stream, name, operation.answer))

    def write(
        self,
        context: CallContext,
        method: str,
        began_ns: int,
        received: int,
        sent: int,
        status: str,
        request: Request | None = None,
        version: int = 0,
        call: object = None,
    ) -> None:
        """Log one call, or one request of a stream."""
        model = "" if request is None else request.model_name
        key = (peer_of(context), method, model, version)
        caller = self._callers.get(key)
        if caller is None:
            if len(self._callers) >= _KEPT:
                self._callers.clear()
            caller = self._callers[key] = self._access.caller(_address(key[0]), "grpc", method, model, version)
        parent = ""
        for name, value in context.invocation_metadata() or ():
            if name == "traceparent" and isinstance(value, str):
                parent = value
        self._access.record(
            self._access.subject(caller, "" if request is None else request.id, status, received, sent),
            began_ns,
            getattr(call, "queue_ns", 0),
            getattr(call, "phases", NO_PHASES),
            getattr(call, "joined", ()),
            parent,
        )

    async def _answer(self, method: str, answer: Callable[[bytes, Any], Any], message: bytes, context: Any) -> bytes:
        if not self._access.enabled:
            plain: bytes = await answer(message, context)
            return plain
        began_ns, status, sent = monotonic_ns(), _CANCELLED, 0
        try:
            answered: bytes = await answer(message, context)
            status, sent = _OK, len(answered)
            return answered
        except Exception as error:
            status = _status_of(error)
            raise
        finally:
            self.write(context, method, began_ns, len(message), sent, status)

    async def _answer_stream(
        self, method: str, answer: Callable[..., Any], messages: AsyncIterator[bytes], context: Any
    ) -> AsyncGenerator[bytes, None]:
        began_ns, status, sent = monotonic_ns(), _CANCELLED, 0
        try:
            async with aclosing(answer(messages, context)) as answered:
                async for message in answered:
                    sent += len(message)
                    yield message
            status = _OK
        except Exception as error:
            status = _status_of(error)
            raise
        finally:
            if self._access.enabled:
                self.write(context, method, began_ns, 0, sent, status)


class CallLine:
    """The line of one ModelInfer: takes its result, logs it and passes it on."""

    __slots__ = ("_answered", "_began_ns", "_call", "_context", "_lines", "_over", "_received", "_request", "_version")

    def __init__(
        self, lines: Lines, context: CallContext, received: int, answered: Callable[[RpcResult], None]
    ) -> None:
        self._version = 0
        self._lines = lines
        self._context = context
        self._received = received
        self._answered = answered
        self._began_ns = monotonic_ns()
        self._request: Request | None = None
        self._call: Call | None = None
        self._over = False

    def __call__(self, result: RpcResult) -> None:
        """Take the result."""
        failed = isinstance(result, RpcError)
        status = result.code.name if isinstance(result, RpcError) else _OK
        self._answered(result)
        self._write(status, 0 if failed else sum(map(len, result)))  # type: ignore[arg-type]

    def note(self, request: Request, version: int) -> None:
        """The request is about to be answered, by that version of its model; 0 for none."""
        self._request, self._version = request, version

    def submitted(self, request: Request, call: Call, cancel: Callable[[], None]) -> Callable[[], None]:
        """Remember the call of the request; returns the function that cancels both."""
        if not self._over:
            self._request, self._call = request, call
        return partial(self._cancel, cancel)

    def _cancel(self, cancel: Callable[[], None]) -> None:
        cancel()
        if not self._over:
            self._write(_CANCELLED, 0)

    def _write(self, status: str, sent: int) -> None:
        self._over = True
        request, call = self._request, self._call
        self._request = self._call = None  # the call refers to this line: tensors would wait for a garbage collection
        self._lines.write(
            self._context, "ModelInfer", self._began_ns, self._received, sent, status, request, self._version, call
        )


class LoggedStreamRequest(StreamRequest):
    """A request of a stream that has a line in the access log, once it has all its responses."""

    __slots__ = ("_began_ns", "_context", "_lines", "_received", "_sent", "_status", "_version")

    def __init__(
        self,
        lines: Lines,
        context: CallContext,
        on_outcome: Callable[[StreamRequest, Outcome], None],
        request: Request,
        form: ResponseForm,
        size: int,
        decoupled: bool,
    ) -> None:
        super().__init__(on_outcome, request, form, size, decoupled)
        self._lines = lines
        self._context = context
        self._began_ns = request.received_ns or monotonic_ns()
        self._received = size
        self._sent = 0
        self._status = _OK
        self._version = request.version

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome of the request."""
        self._version = getattr(outcome, "version", 0) or self._version
        super().deliver(outcome)

    def queued(self, size: int) -> None:
        """A response of the request was queued."""
        self._sent += size
        super().queued(size)

    def failed(self, error: RpcError) -> None:
        """The request, or its stream with it, failed."""
        self._status = error.code.name
        super().failed(error)

    def drop(self) -> None:
        """Cancel the request and forget its responses."""
        if self._status == _OK:
            self._status = _CANCELLED
        super().drop()

    def end(self) -> None:
        """The request has all its responses."""
        method, request = "ModelStreamInfer", self.request
        self._lines.write(
            self._context,
            method,
            self._began_ns,
            self._received,
            self._sent,
            self._status,
            request,
            self._version,
            self.call,
        )
        super().end()


def lines_of(server: "ServerApi") -> Lines | None:
    """What writes the lines of a server, None without an access log."""
    access = access_log_of(server)
    return None if access is None else Lines(access)


def _address(peer: str) -> str:
    """The address without the scheme that gRPC puts before it."""
    scheme, _, address = peer.partition(":")
    return address.replace("%5B", "[").replace("%5D", "]") if scheme in ("ipv4", "ipv6", "unix") else peer


def _status_of(error: Exception) -> str:
    if isinstance(error, RpcError):
        return error.code.name
    return code_of(error).name if isinstance(error, NaiadError) else Code.INTERNAL.name
