"""Lines of the access log for gRPC: one for each call, and one for each request of a stream of inference."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from naiad.errors import NaiadError
from naiad.types import Request, Response
from naiad_grpc.codec import ResponseForm
from naiad_grpc.inference_intake import CallContext, peer_and_trace_of
from naiad_grpc.service.operations import Operation, RpcResult, UnaryOperation
from naiad_grpc.statuses import Code, RpcError, code_of
from naiad_grpc.streaming_requests import Call, Outcome, StreamRequest
from naiad_kit.access_lines import Form, LoggedClient
from naiad_kit.access_log import AccessLog, access_log_of, times_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_KEPT = 1024
_OK, _CANCELLED = Code.OK.name, Code.CANCELLED.name


class Lines:
    """Makes the lines of one server, and keeps what the lines of its latest clients have in common."""

    def __init__(self, access: AccessLog) -> None:
        self._access = access
        self._clients: dict[str, _Client] = {}

    def follow(self, use: "Callable[[Lines | None], object]") -> None:
        """Call `use` with these lines while the access log is switched on, and with None while it is not."""
        self._access.follow(lambda enabled: use(self if enabled else None))

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
        peer, traceparent = peer_and_trace_of(context)
        client = self._clients.get(peer)
        if client is None:
            if len(self._clients) >= _KEPT:
                self._clients.clear()
            client = self._clients[peer] = _Client(_address(peer))
        model, request_id = ("", "") if request is None else (request.model_name, request.id)
        key = method, model, version, request_id, status, received, sent, traceparent
        self._access.record(client, key, began_ns, *times_of(call))

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


class _Client(LoggedClient):
    """One client. A key is method, model, version, ID, status, bytes received and sent, and the trace context."""

    __slots__ = ("_caller", "_of", "_peer")

    def __init__(self, peer: str) -> None:
        super().__init__()
        self._peer = peer
        self._caller = ""
        self._of: tuple[str, str, int] | None = None  # method, model and version that `_caller` describes

    def describe(self, form: Form, key: tuple[Any, ...]) -> None:
        """As in LoggedClient."""
        method, model, version, request_id, status, received, sent, traceparent = key
        if self._of != (method, model, version):
            self._of = method, model, version
            self._caller = form.caller(self._peer, "grpc", method, model, version)
        self.subject = form.subject(self._caller, request_id, status, received, sent)
        self.trace = form.trace(traceparent)
        self.key = key


class CallLine:
    """The line of one ModelInfer. `call` is that of its request; `over` says that the line is recorded."""

    __slots__ = ("_began_ns", "_context", "_lines", "_received", "call", "over")

    def __init__(self, lines: Lines, context: CallContext, received: int) -> None:
        """`received` is the size of the request in bytes."""
        self._lines = lines
        self._context = context
        self._received = received
        self._began_ns = monotonic_ns()
        self.call: Call | None = None
        self.over = False

    def answered(self, request: Request | None, outcome: Response | Exception, result: RpcResult) -> None:
        """The outcome was sent as that result; `request` is None for one that was not decoded."""
        if isinstance(result, RpcError):
            self._write(request, getattr(outcome, "version", 0), result.code.name, 0)
        else:
            self._write(request, outcome.version, _OK, sum(map(len, result)))  # type: ignore[union-attr]

    def cancelled(self, request: Request, cancel: Callable[[], None]) -> None:
        """Call `cancel`, and log the request as cancelled unless it was answered before."""
        cancel()
        if not self.over:
            self._write(request, 0, _CANCELLED, 0)

    def _write(self, request: Request | None, version: int, status: str, sent: int) -> None:
        call, version = self.call, version or (0 if request is None else request.version)
        self.over, self.call = True, None  # a call refers to tensors and to this line
        self._lines.write(
            self._context, "ModelInfer", self._began_ns, self._received, sent, status, request, version, call
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
