"""Lines of the access log for gRPC: one for each call, and one for each request of a stream of inference."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from naiad.errors import NaiadError
from naiad.types import Request, Response
from naiad_grpc.codec import ResponseForm
from naiad_grpc.inference_intake import CallContext, peer_and_trace_of
from naiad_grpc.named_models import NamedModel, named_model
from naiad_grpc.service.operations import Operation, RpcResult, UnaryOperation
from naiad_grpc.statuses import Code, RpcError, code_of
from naiad_grpc.streaming_requests import Call, Outcome, StreamRequest, cancel
from naiad_kit.access_lines import Form
from naiad_kit.access_log import AccessLog, access_log_of
from naiad_kit.buffers import Buffer, total_size
from naiad_kit.tracing import traceparent_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_KEPT = 1024
_LONG = 65536
_OK, _CANCELLED, _LATE = Code.OK.name, Code.CANCELLED.name, Code.DEADLINE_EXCEEDED.name

_EARLY = 0.05
"""Seconds by which a client's deadline may pass before that of its call here: its clock began earlier."""


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
            return replace(operation, answer=partial(self._answer, name, named_model(operation.path), operation.answer))
        return replace(operation, answer=partial(self._answer_stream, name, operation.answer))

    def write(self, line: "Line", status: str, sent: int, version: int = 0, model: str = "") -> None:
        """Log the end of a line; `model` and `version` are those of a call without a request.

        Without a `version`, which answered, the line of a request has the one that it asked for.
        """
        request = line.request
        peer, traceparent = peer_and_trace_of(line.context)
        client = self._clients.get(peer) or self._new_client(peer)
        request_id = ""
        if request is not None:
            model, version, request_id = request.model_name, version or request.version, request.id
            if request.trace is not None:
                traceparent = traceparent_of(request.trace) or traceparent
        if (  # takes less time than to compare tuples
            sent != client.sent
            or request_id != client.request_id
            or line.received != client.received
            or model != client.model
            or version != client.version
            or traceparent != client.traceparent
            or status != client.status
            or line.method != client.method
        ):
            client.describe(line.method, model, version, request_id, status, line.received, sent, traceparent)
        self._access.record(client.subject, client.trace, line.began_ns, line.call)
        line.over, line.call = True, None  # a call refers to tensors and to its line

    def succeeded(self, line: "Line", request: Request, answer: list[Buffer], version: int) -> None:
        """Log the request of a ModelInfer that this version of the model answered: as `write` does, in fewer steps.

        Most calls of a client have one head, whose identity tells method, peer and trace context.
        """
        context = line.context
        sent = len(answer[0]) if len(answer) == 1 else total_size(answer)
        try:
            peer, head = context.connection.peer, context.head
        except AttributeError:  # the context of another transport, or one that is wrapped
            self.write(line, _OK, sent, version)
            return
        client = self._clients.get(peer) or self._new_client(peer)
        if (
            head is not client.head
            or sent != client.sent
            or request.id != client.request_id
            or line.received != client.received
            or version != client.version
            or request.model_name != client.model
            or request.trace is not None
        ):
            self.write(line, _OK, sent, version)
            client.head = head if request.trace is None else None
            return
        self._access.record(client.subject, client.trace, line.began_ns, line.call)
        line.over, line.call = True, None

    def _new_client(self, peer: str) -> "_Client":
        if len(self._clients) >= _KEPT:
            self._clients.clear()
        client = self._clients[peer] = _Client(self._access.form, _address(peer))
        return client

    async def _answer(
        self,
        method: str,
        named: NamedModel | None,
        answer: Callable[[bytes, Any], Any],
        message: bytes,
        context: Any,
    ) -> bytes:
        if not self._access.enabled:
            plain: bytes = await answer(message, context)
            return plain
        line, status, sent = Line(self, context, method, len(message)), "", 0
        try:
            answered: bytes = await answer(message, context)
            status, sent = _OK, len(answered)
            return answered
        except Exception as error:
            status = _status_of(error)
            raise
        finally:
            model, version = _model_of(named, message)
            self.write(line, status or line.cancellation(), sent, version, model)

    async def _answer_stream(
        self, method: str, answer: Callable[..., Any], messages: AsyncIterator[bytes], context: Any
    ) -> AsyncGenerator[bytes, None]:
        line, status, sent = Line(self, context, method, 0), "", 0
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
            self.write(line, status or line.cancellation(), sent)


class _Client:
    """One client: `subject` and `trace` are the texts of lines for the call that it repeats, the rest is that call.

    `head` is the call's own if it was a ModelInfer that was answered, else None.
    """

    __slots__ = (
        "_caller",
        "_form",
        "_of",
        "_peer",
        "head",
        "method",
        "model",
        "received",
        "request_id",
        "sent",
        "status",
        "subject",
        "trace",
        "traceparent",
        "version",
    )

    def __init__(self, form: Form, peer: str) -> None:
        self._form = form
        self._peer = peer
        self._caller = ""
        self._of = ("", "", 0)  # method, model and version that `_caller` describes
        self.method = self.status = self.model = self.request_id = self.traceparent = self.subject = self.trace = ""
        self.version = self.received = self.sent = 0
        self.head: object = None

    def describe(
        self,
        method: str,
        model: str,
        version: int,
        request_id: str,
        status: str,
        received: int,
        sent: int,
        traceparent: str,
    ) -> None:
        """Set `subject` and `trace` to those of that call, and the rest."""
        form = self._form
        if self._of != (method, model, version):
            self._of = method, model, version
            self._caller = form.caller(self._peer, "grpc", method, model, version)
        self.head = None
        self.subject = form.subject(self._caller, request_id, status, received, sent)
        self.trace = form.trace(traceparent)
        self.method, self.model, self.version, self.request_id = method, model, version, request_id
        self.status, self.received, self.sent, self.traceparent = status, received, sent, traceparent


class Line:
    """The line of one call, or of one request of a stream.

    `method` is the name of the RPC. `request` is the request once it is decoded, of `received` bytes, and `call` what
    the server made of it. `over` says that the line is written.
    """

    __slots__ = ("_lines", "began_ns", "call", "context", "method", "over", "received", "request")

    def __init__(
        self, lines: Lines, context: CallContext, method: str, received: int, request: Request | None = None
    ) -> None:
        """It began when the request was received, without one now."""
        self._lines = lines
        self.context: Any = context
        self.method = method
        self.received = received
        self.began_ns = monotonic_ns() if request is None else request.received_ns
        self.request = request
        self.call: Call | None = None
        self.over = False

    def answered(self, outcome: Response | Exception, result: RpcResult) -> None:
        """The outcome was sent as that result."""
        if isinstance(result, RpcError):
            self._lines.write(self, result.code.name, 0, getattr(outcome, "version", 0))
        else:
            self._lines.write(self, _OK, total_size(result), outcome.version)  # type: ignore[union-attr]

    def cancel(self) -> None:
        """Cancel the request, and log it as cancelled, unless it was answered before."""
        if self.call is not None and self.request is not None:
            cancel(self.call, self.request)
            self._lines.write(self, self.cancellation(), 0)

    def cancellation(self) -> str:
        """The status of a call that is cancelled now: at its deadline it is late, even if the client ended it.

        The deadline here is later than the client's: clients round the time that is left up, by a hundredth at most.
        """
        remaining = self.context.time_remaining()
        elapsed = (monotonic_ns() - self.began_ns) / 1e9
        return _CANCELLED if remaining is None or remaining > max(_EARLY, elapsed / 100) else _LATE


class LoggedStreamRequest(StreamRequest):
    """A request of a stream that has a line in the access log, once it has all its responses."""

    __slots__ = ("_line", "_lines", "_sent", "_status", "_version")

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
        self._line = Line(lines, context, "ModelStreamInfer", size, request)
        self._sent = 0
        self._status = _OK
        self._version = 0

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
        """Cancel the request, unless it has all its responses, and forget those that are queued."""
        if self._status == _OK and not self._over:
            self._status = self._line.cancellation()
        super().drop()

    def end(self) -> None:
        """The request has all its responses."""
        self._line.call = self.call
        self._lines.write(self._line, self._status, self._sent, self._version)
        super().end()


def lines_of(server: "ServerApi") -> Lines | None:
    """What writes the lines of a server, None without an access log."""
    access = access_log_of(server)
    return None if access is None else Lines(access)


def _model_of(named: NamedModel | None, message: bytes) -> tuple[str, int]:
    """The model that a message names, and its version; those of a long one, with the files of a model, are not read."""
    try:
        return ("", 0) if named is None or len(message) > _LONG else named.read(message)
    except DecodeError:
        return "", 0


def _address(peer: str) -> str:
    """The address without the scheme that gRPC puts before it."""
    scheme, _, address = peer.partition(":")
    return address.replace("%5B", "[").replace("%5D", "]") if scheme in ("ipv4", "ipv6", "unix") else peer


def _status_of(error: Exception) -> str:
    if isinstance(error, RpcError):
        return error.code.name
    return code_of(error).name if isinstance(error, NaiadError) else Code.INTERNAL.name
