"""RPCs of inference, ModelInfer and ModelStreamInfer, from bytes to bytes; independent of the transport."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING

from naiad.errors import NaiadError
from naiad.types import Request, Response
from naiad_grpc.access_lines import Line, Lines, lines_of
from naiad_grpc.codec import COSTLY_BYTES, Encoder, RequestMessage, ResponseForm, TakesLong, request_id_of
from naiad_grpc.inference_intake import CallContext, Decoded
from naiad_grpc.keyed_calls import make_intake
from naiad_grpc.service.operations import RpcResult
from naiad_grpc.statuses import Code, RpcError, rpc_error, too_long
from naiad_grpc.streaming import InferStream
from naiad_grpc.streaming_loop import run_stream
from naiad_grpc.streaming_requests import StreamRequest, cancel
from naiad_grpc.trace_attributes import status_attributes
from naiad_kit.buffers import Buffer, total_size
from naiad_kit.explaining import EXPLAIN, encoded_twice
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.forwarding import HeaderForwarding
from naiad_kit.tracing import add_attributes

if TYPE_CHECKING:
    from naiad.server import ServerApi

ERROR_KEY = "triton_grpc_error"
"""The metadata key with which the caller of a stream requests that its first error ends the stream."""


class Inference:
    """Decodes, submits and encodes. For the event loop's thread only."""

    def __init__(self, server: "ServerApi", forwarding: HeaderForwarding, most: int) -> None:
        """`most` is the maximum size of a response in bytes."""
        self._server = server
        self._most = most
        self._threads = CodecThreads("naiad-grpc-codec")
        self._intake = make_intake(server, forwarding, self._threads)
        self.decode = self._intake.decode
        self.memory = self._intake.memory
        self.encoder = Encoder(self._batches, server.labels)
        self._large_encoder = Encoder(self._batches, server.labels, sys.maxsize)
        self._lines: Lines | None = None
        lines = lines_of(server)
        if lines is not None:
            lines.follow(self._use_lines)

    def _use_lines(self, lines: Lines | None) -> None:
        self._lines = lines

    async def infer(self, message: bytes, context: CallContext) -> bytes:
        """ModelInfer: the response to a request. Raises RpcError; cancelling the task cancels the request."""
        answered: asyncio.Future[RpcResult] = asyncio.get_running_loop().create_future()
        decoded, decoding = self._intake.decode(message) if len(message) >= COSTLY_BYTES else (None, None)
        decoded = decoded if decoding is None else await decoding()
        cancel_request = self.begin(message, context, partial(_settle, answered), decoded)
        del decoded
        try:
            answer = await answered
        finally:
            cancel_request()
        if isinstance(answer, RpcError):
            raise answer
        return b"".join(answer)

    def begin(
        self,
        message: RequestMessage,
        context: CallContext,
        answered: Callable[[RpcResult], None],
        decoded: Decoded | None = None,
    ) -> Callable[[], None]:
        """ModelInfer without a task: `answered` is called once with the result, perhaps before this returns.

        `decoded` is the request of a large message. Returns a function that cancels the request; it may be called
        after the result.
        """
        request, line, lines = None, None, self._lines
        deliver: Callable[[Response | Exception], None]
        try:
            request, form = self._intake.read(message, self._intake.caller(context, "ModelInfer"), decoded)
            if lines is None:
                deliver = partial(self._deliver, request, form, answered)
            else:
                line = _LoggedInfer(self, lines, context, len(message), request, form, answered)
                deliver = line.deliver
            call = self._server.submit(request, deliver)
        except Exception as error:  # noqa: BLE001 - a bug must not leave the client waiting
            if request is None:
                refusal = rpc_error(error, request_id_of(message))
                answered(refusal)
                if lines is not None:
                    Line(lines, context, "ModelInfer", len(message)).answered(error, refusal)
            else:
                deliver(error)
            return _nothing
        if line is not None and not line.over:
            line.call = call
            return line.cancel
        return call.cancel if request.trace is None else partial(cancel, call, request)

    def stream(self, messages: AsyncIterator[bytes], context: CallContext) -> AsyncGenerator[bytes, None]:
        """ModelStreamInfer: the responses to all requests. Raises RpcError; closing it cancels all requests."""
        return run_stream(self.open_stream(context), messages)

    def open_stream(self, context: CallContext) -> InferStream:
        """ModelStreamInfer without a task: the stream of one call. Raises RpcError."""
        try:
            caller = self._intake.caller(context, "ModelStreamInfer")
        except NaiadError as error:
            raise rpc_error(error) from error
        ends_at_error = (ERROR_KEY, "true") in (context.invocation_metadata() or ())
        return InferStream(
            self._server,
            self._intake,
            self.encoder,
            caller,
            self._most,
            ends_at_error,
            self._encode_large,
            StreamRequest if self._lines is None else self._lines.of_stream(context),
        )

    def _deliver(
        self,
        request: Request,
        form: ResponseForm,
        answered: Callable[[RpcResult], None],
        outcome: Response | Exception,
    ) -> None:
        trace = request.trace
        if trace is not None:
            trace.record("GRPC_SEND_START")
        try:
            answer = self.answer(self.encoder, request, form, outcome)
        except TakesLong:
            self.answer_large(request, form, outcome, partial(_send, request, answered))
            return
        answered(answer)
        if trace is not None:
            _end_trace(request, answer)

    def answer_large(
        self,
        request: Request,
        form: ResponseForm,
        outcome: Response | Exception,
        answered: Callable[[RpcResult], None],
    ) -> None:
        """Encode the message of an outcome on a thread, and call `answered` with it, or with its status."""

        def encoded(answer: RpcResult | BaseException) -> None:
            answered(rpc_error(answer, request.id) if isinstance(answer, BaseException) else answer)

        self._threads.submit(partial(self.answer, self._large_encoder, request, form, outcome), encoded)

    def answer(
        self, encoder: Encoder, request: Request, form: ResponseForm, outcome: Response | Exception
    ) -> RpcResult:
        """The message of an outcome, or its status. Raises TakesLong where the encoder does."""
        if isinstance(outcome, Exception):
            return rpc_error(outcome, request.id)
        try:
            if outcome.parameters and EXPLAIN in outcome.parameters:
                message = encoded_twice(outcome, partial(encoder.encode, outcome, form))
            else:
                message = encoder.encode(outcome, form)
            size = total_size(message)
            return message if size <= self._most else too_long(size, self._most, request.id)
        except TakesLong:
            raise
        except Exception as error:  # noqa: BLE001 - the caller must get a response whatever a model put into its outputs
            return rpc_error(error, request.id)

    def _encode_large(
        self, response: Response, form: ResponseForm, encoded: Callable[[list[Buffer] | BaseException], None]
    ) -> None:
        """Encode a response of a stream on a thread."""
        self._threads.submit(partial(self._large_encoder.encode_part, response, form), encoded)

    def _batches(self, model: str, version: int) -> bool:
        return self._server.model_config(model, version).max_batch_size > 0


class _LoggedInfer(Line):
    """A ModelInfer that has a line in the access log: one object for its line and for the delivery of its outcome."""

    __slots__ = ("_answered", "_form", "_inference")

    def __init__(
        self,
        inference: Inference,
        lines: Lines,
        context: CallContext,
        received: int,
        request: Request,
        form: ResponseForm,
        answered: Callable[[RpcResult], None],
    ) -> None:
        self._lines = lines  # without `super()`, which takes as long as all of this
        self.context = context
        self.method = "ModelInfer"
        self.received = received
        self.began_ns = request.received_ns
        self.request = request
        self.call = None
        self.over = False
        self._inference = inference
        self._form = form
        self._answered = answered

    def deliver(self, outcome: Response | Exception) -> None:
        """Take the outcome of the request: answer the call, and log it."""
        inference, request = self._inference, self.request
        assert request is not None  # noqa: S101 - for the type checker
        trace = request.trace
        if trace is not None:
            trace.record("GRPC_SEND_START")
        try:
            answer = inference.answer(inference.encoder, request, self._form, outcome)
        except TakesLong:
            inference.answer_large(request, self._form, outcome, partial(self._send, outcome))
            return
        self._answered(answer)
        if type(outcome) is Response and type(answer) is list:
            self._lines.succeeded(self, request, answer, outcome.version)
        else:
            self.answered(outcome, answer)
        if trace is not None:
            _end_trace(request, answer)

    def _send(self, outcome: Response | Exception, answer: RpcResult) -> None:
        """Send a response that was encoded on a thread, and log it, unless the call was cancelled meanwhile."""
        if self.over:
            return
        self._answered(answer)
        self.answered(outcome, answer)
        if self.request is not None:
            _end_trace(self.request, answer)


def make_inference(server: "ServerApi") -> Inference:
    """The inference RPCs of a server, configured by its options. Raises InvalidArgumentError for an invalid option."""
    settings = server.settings
    forwarding = HeaderForwarding(settings["grpc-header-forward-pattern"], "--grpc-header-forward-pattern")
    return Inference(server, forwarding, settings["grpc-max-response-size"])


def _settle(answered: asyncio.Future[RpcResult], result: RpcResult) -> None:
    if not answered.done():
        answered.set_result(result)


def _send(request: Request, answered: Callable[[RpcResult], None], answer: RpcResult) -> None:
    """Send a response that was encoded on a thread."""
    answered(answer)
    _end_trace(request, answer)


def _end_trace(request: Request, result: RpcResult) -> None:
    """End the trace of a request that was answered, if it has one."""
    if request.trace is not None:
        request.trace.record("GRPC_SEND_END")
        add_attributes(request.trace, status_attributes(result.code if isinstance(result, RpcError) else Code.OK))
        request.trace.end()


def _nothing() -> None:
    """Do nothing: there is no request to cancel."""
