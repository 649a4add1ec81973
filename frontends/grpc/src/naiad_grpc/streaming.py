"""State machine of ModelStreamInfer, without tasks: messages in, messages out, in the order that callers rely on."""

from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from naiad.errors import DeadlineExceededError, NaiadError, drop_tracebacks
from naiad.types import Request, Response
from naiad_grpc.codec import Encoder, RequestMessage, ResponseForm, TakesLong, encode_error, request_id_of
from naiad_grpc.codec.forms import PLAIN
from naiad_grpc.inference_intake import Caller, Decoded, Intake
from naiad_grpc.statuses import RpcError, rpc_error, too_long
from naiad_grpc.streaming_requests import Message, Outcome, ReadyMessages, StreamRequest
from naiad_kit.explaining import EXPLAIN, encoded_twice
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES, ByteBudget

if TYPE_CHECKING:
    from naiad.server import ServerApi

MOST_READY, MOST_READY_BYTES = 64, 4 << 20
"""The limits of responses that wait to be taken: above them the models of the stream pause, until half is taken."""

MOST_OPEN, MOST_OPEN_BYTES = 1024, 64 << 20
"""The limits of requests without a last response, in number and bytes: above them no more may be fed."""

_EARLY = 0.01
"""How many seconds early the timer of an event loop may end a request at its deadline."""

EncodeLarge = Callable[[Response, ResponseForm, Callable[[Message | BaseException], None]], None]
"""Encodes a response on a thread, and calls back on the event loop with its message or the error."""

MakeRequest = Callable[[Callable[[StreamRequest, Outcome], None], Request, ResponseForm, int, bool], StreamRequest]
"""Makes the record of a request of a stream; see `StreamRequest`."""


class InferStream:
    """One call of ModelStreamInfer. For the event loop's thread.

    Responses of models that are not decoupled come in the order of their requests; the responses of a decoupled model
    to one request in the order in which it sends them, whatever else is in flight. An error is a response, unless the
    caller wants errors to end the stream, or the deadline of the call has passed.
    """

    def __init__(
        self,
        server: "ServerApi",
        intake: Intake,
        encoder: Encoder,
        caller: Caller,
        most: int,
        ends_at_error: bool,
        encode_large: EncodeLarge,
        make_request: MakeRequest = StreamRequest,
    ) -> None:
        """`most` is the maximum size of a response in bytes; `encode_large` encodes responses that take too long."""
        self._on_ready: Callable[[], None] = _nothing
        self._on_room: Callable[[], None] = _nothing
        self._server = server
        self._intake = intake
        self._encoder = encoder
        self._caller = caller
        self._most = most
        self._ends_at_error = ends_at_error
        self._encode_large = encode_large
        self._make_request = make_request
        self._budget = server.service(ByteBudget)
        self._ready = ReadyMessages(MOST_READY, MOST_READY_BYTES, self._budget)
        self._open: set[StreamRequest] = set()
        self._open_size = 0
        self._uncharged = 0  # bytes of open requests that are not in the budget: each is small, but there may be many
        self._order: deque[StreamRequest] = deque()
        self._finished = False
        self._failure: RpcError | None = None

    def follow(self, on_ready: Callable[[], None], on_room: Callable[[], None]) -> None:
        """Call `on_ready` when there is something new to `take` or the stream is over.

        And call `on_room` when the stream may be no longer `full`.
        """
        self._on_ready, self._on_room = on_ready, on_room

    @property
    def full(self) -> bool:
        """Whether no more requests may be fed now: too many are in flight, or the reader is too slow."""
        return self._ready.slow or len(self._open) >= MOST_OPEN or self._open_size >= MOST_OPEN_BYTES

    @property
    def over(self) -> bool:
        """Whether there will be no further message."""
        return self._finished and not (self._open or self._ready or self._failure)

    async def decode(self, message: RequestMessage) -> Decoded | None:
        """The argument of `feed` for a message of COSTLY_BYTES or more: its request, if decoding takes long."""
        try:
            self._budget.reserve(len(message))
        except NaiadError as error:
            drop_tracebacks(error)
            return error
        try:
            decoded, decoding = self._intake.decode(message)
            return decoded if decoding is None else await decoding()
        finally:
            self._budget.release(len(message))

    def feed(self, message: RequestMessage, decoded: Decoded | None = None) -> None:
        """Take a request in. An error in it becomes its response."""
        if self._finished:
            return
        request: Request | None = None
        charged = 0
        try:
            if self._uncharged + len(message) > UNCHARGED_BYTES:
                self._budget.reserve(len(message))
                charged = len(message)
            request, form = self._intake.read(message, self._caller, decoded)
            decoupled = self._is_decoupled(request)
        except Exception as error:  # noqa: BLE001 - a bug must not end the stream
            self._budget.release(charged)
            unread = request or Request("", {}, id=request_id_of(message))
            self._refuse(self._admit(self._make_request(self.deliver, unread, PLAIN, 0, False)), error)
            return
        stream_request = self._make_request(self.deliver, request, form, len(message), decoupled)
        stream_request.charged = charged
        self._submit(self._admit(stream_request))

    def finish(self) -> None:
        """End the requests: the stream is over when all of them have their last response."""
        self._finished = True
        if self.over:
            self._on_ready()

    def take(self) -> Message | None:
        """The buffers of the next message to send, None if there is none now. Raises RpcError if the stream failed."""
        if self._ready:
            was_slow = self._ready.slow
            message = self._ready.take()
            if was_slow and not self._ready.slow:
                self._resume_models()
            return message
        self._ready.written()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return None

    def fail(self, error: RpcError) -> None:
        """End the stream with that status, after the ready messages, and cancel all requests."""
        if self._failure is None:
            self._failure = error
            self._drop_requests()
            self._on_ready()

    def cancel(self) -> None:
        """Cancel all requests: the caller is gone. May be called again."""
        self._ready.drop()
        self._drop_requests()

    def deliver(self, stream_request: StreamRequest, outcome: Outcome) -> None:
        """Take an outcome of one of the requests."""
        if stream_request not in self._open:
            return
        if stream_request.behind is not None:
            stream_request.behind.append(outcome)
            return
        if isinstance(outcome, NaiadError):
            self._deliver_error(
                stream_request,
                outcome,
                stream_request.request.version or self._latest(stream_request.request.model_name),
                True,
            )
        elif outcome.error is not None:
            self._deliver_error(stream_request, outcome.error, outcome.version, outcome.final)
        elif stream_request.decoupled and outcome.is_empty and not stream_request.form.empty_final:
            self._close(stream_request)
        else:
            self._deliver_response(stream_request, outcome)

    def _submit(self, stream_request: StreamRequest) -> None:
        try:
            call = self._server.submit(stream_request.request, stream_request.deliver, streams=True)
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse(stream_request, error)
            return
        if stream_request not in self._open:  # the outcome came at once, and may have ended the stream
            call.cancel()
            return
        stream_request.call = call
        if self._ready.slow or stream_request.behind is not None:
            stream_request.pause()

    def _deliver_response(self, stream_request: StreamRequest, response: Response) -> None:
        try:
            if response.parameters and EXPLAIN in response.parameters:
                message = encoded_twice(response, partial(self._encoder.encode_part, response, stream_request.form))
            else:
                message = self._encoder.encode_part(response, stream_request.form)
        except TakesLong:
            stream_request.behind = deque()
            stream_request.pause()
            self._encode_large(response, stream_request.form, partial(self._deliver_large, stream_request, response))
        except Exception as error:  # noqa: BLE001 - the caller must get a response whatever a model put into its outputs
            self._deliver_error(stream_request, error, response.version, response.final)
        else:
            self._deliver_encoded(stream_request, response, message)

    def _deliver_encoded(self, stream_request: StreamRequest, response: Response, message: Message) -> None:
        if (size := sum(map(len, message))) > self._most:
            error = too_long(size, self._most, stream_request.request.id)
            self._deliver_error(stream_request, error, response.version, response.final)
        else:
            self._put(stream_request, message, response.final)

    def _deliver_large(
        self, stream_request: StreamRequest, response: Response, message: Message | BaseException
    ) -> None:
        """Deliver a response that was encoded on a thread, and then the outcomes that arrived meanwhile."""
        behind, stream_request.behind = stream_request.behind, None
        if stream_request not in self._open:
            return
        if isinstance(message, BaseException):
            self._deliver_error(stream_request, message, response.version, response.final)
        else:
            self._deliver_encoded(stream_request, response, message)
        for outcome in behind or ():
            self.deliver(stream_request, outcome)
        if not self._ready.slow:
            stream_request.resume()

    def _deliver_error(self, stream_request: StreamRequest, error: BaseException, version: int, final: bool) -> None:
        request = stream_request.request
        failure = rpc_error(error, request.id)
        stream_request.failed(failure)
        if self._ends(error):
            self.fail(failure)
        else:
            message = encode_error(failure.message, request.id, request.model_name, version, final)
            self._put(stream_request, [message], final)

    def _refuse(self, stream_request: StreamRequest, error: Exception) -> None:
        """Answer a request that was not submitted."""
        failure = rpc_error(error, stream_request.request.id)
        stream_request.failed(failure)
        if self._ends(error):
            self.fail(failure)
        else:
            self._put(stream_request, [encode_error(failure.message, stream_request.request.id)], True)

    def _ends(self, error: BaseException) -> bool:
        """Whether an error ends the stream: the caller wants that, or the deadline of the call has passed."""
        deadline = self._caller.deadline
        if deadline is None or not isinstance(error, DeadlineExceededError):
            return self._ends_at_error
        return self._ends_at_error or monotonic() + _EARLY >= deadline

    def _admit(self, stream_request: StreamRequest) -> StreamRequest:
        self._open.add(stream_request)
        self._open_size += stream_request.size
        if not stream_request.charged:
            self._uncharged += stream_request.size
        if not stream_request.decoupled:
            self._order.append(stream_request)
        return stream_request

    def _put(self, stream_request: StreamRequest, message: Message, last: bool) -> None:
        """Queue a response of that request, which may be its last."""
        if stream_request.decoupled:
            self._push(stream_request, message)
            if last:
                self._close(stream_request)
            return
        was_full = self.full
        stream_request.answer = message
        size = sum(map(len, message))
        self._open_size += size - stream_request.size  # it now holds its response instead of its request
        if stream_request.charged:
            self._charge(stream_request, size)
        else:
            self._uncharged -= stream_request.size
            if self._uncharged + size > UNCHARGED_BYTES:
                self._charge(stream_request, size)
            else:
                self._uncharged += size
        stream_request.size = size
        while self._order and (answer := self._order[0].answer) is not None:
            first = self._order.popleft()
            self._push(first, answer)
            self._close(first)
        if was_full and not self.full:
            self._on_room()

    def _push(self, stream_request: StreamRequest, message: Message) -> None:
        was_slow = self._ready.slow
        self._ready.put(stream_request, message)
        if self._ready.slow and not was_slow:
            for each in self._open:
                each.pause()
        self._on_ready()

    def _resume_models(self) -> None:
        """Resume the models: the reader has caught up."""
        for stream_request in list(self._open):
            stream_request.resume()
        self._on_room()

    def _close(self, stream_request: StreamRequest) -> None:
        was_full = self.full
        self._open.discard(stream_request)
        self._open_size -= stream_request.size
        if stream_request.charged:
            self._charge(stream_request, 0)
        else:
            self._uncharged -= stream_request.size
        stream_request.end()
        if was_full:
            self._on_room()
        if self.over:
            self._on_ready()

    def _drop_requests(self) -> None:
        self._finished = True
        self._order.clear()
        dropped, self._open, self._open_size, self._uncharged = self._open, set(), 0, 0
        for stream_request in dropped:
            self._charge(stream_request, 0)
            stream_request.drop()
        self._on_room()

    def _charge(self, stream_request: StreamRequest, size: int) -> None:
        """Charge the request with `size` bytes from now on."""
        self._budget.release(stream_request.charged)
        stream_request.charged = size
        self._budget.add(size)

    def _is_decoupled(self, request: Request) -> bool:
        policy = self._server.model_config(request.model_name, request.version).model_transaction_policy
        return policy is not None and policy.decoupled

    def _latest(self, model: str) -> int:
        """The version that most likely served a request without a version."""
        try:
            return max(self._server.model_metadata(model).versions, default=0)
        except NaiadError:
            return 0


def _nothing() -> None:
    """Do nothing: no listener is set."""
