"""ModelStreamInfer as a machine without tasks: messages in, messages out, in the order that callers count on."""

from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from naiad.byte_budget import UNCHARGED_BYTES
from naiad.errors import DeadlineExceededError, NaiadError, drop_tracebacks
from naiad.explaining import EXPLAIN, encoded_twice
from naiad.types import Request, Response
from naiad_grpc.codec import AnswerForm, Encoder, TakesLong, encode_error, request_id_of
from naiad_grpc.codec.forms import PLAIN
from naiad_grpc.inference_intake import Caller, Decoded, Intake
from naiad_grpc.statuses import RpcError, rpc_error, too_long
from naiad_grpc.streaming_requests import Asked, Message, Outcome, Ready

if TYPE_CHECKING:
    from naiad.server import ServerApi

MOST_READY, MOST_READY_BYTES = 64, 4 << 20
"""So many responses may wait to be taken before the models of the stream must wait; they go on at half of it."""

MOST_OPEN, MOST_OPEN_BYTES = 1024, 64 << 20
"""So many requests, or bytes of them, may be without a last response before no more are to be fed."""

_EARLY = 0.01
"""So many seconds early may the timer of an event loop be that ends a request at its deadline."""


EncodeLarge = Callable[[Response, AnswerForm, Callable[[Message | BaseException], None]], None]
"""Encodes a response on a thread, and calls back on the event loop with its message or the error."""


class InferStream:
    """One call of ModelStreamInfer. For the event loop's thread.

    Responses to requests of models that are not decoupled come in the order of their requests; those to one request of
    a decoupled model in the order in which it sends them, whatever else is in flight. An error is one of them, unless
    the caller wants it to end the stream, or it says that the deadline of the call has passed. `on_ready` is called
    when there is something new to `take`, or the stream is over; `on_room` when it may be no longer `full`.
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
    ) -> None:
        """`most` is how many bytes a response may have; `encode_large` takes over what takes the encoder too long."""
        self.on_ready: Callable[[], None] = _nothing
        self.on_room: Callable[[], None] = _nothing
        self._server = server
        self._intake = intake
        self._encoder = encoder
        self._caller = caller
        self._most = most
        self._ends_at_error = ends_at_error
        self._encode_large = encode_large
        self._budget = server.bytes_in_flight
        self._ready = Ready(MOST_READY, MOST_READY_BYTES, self._budget)
        self._open: set[Asked] = set()
        self._open_size = 0
        self._order: deque[Asked] = deque()
        self._finished = False
        self._failure: RpcError | None = None

    @property
    def full(self) -> bool:
        """Whether no more requests are to be fed at the moment: too many are in flight, or the reader is too slow."""
        return self._ready.slow or len(self._open) >= MOST_OPEN or self._open_size >= MOST_OPEN_BYTES

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self._finished and not (self._open or self._ready or self._failure)

    async def decode(self, message: bytes) -> Decoded | None:
        """What `feed` takes with a message of COSTLY_BYTES or more: its request, if decoding takes long."""
        size = len(message)
        try:
            self._budget.reserve(size)
        except NaiadError as error:
            drop_tracebacks(error)
            return error
        try:
            return await self._intake.decode(message)
        finally:
            self._budget.release(size)

    def feed(self, message: bytes, decoded: Decoded | None = None) -> None:
        """Take a request in. What is wrong with it becomes its response."""
        if self._finished:
            return
        request: Request | None = None
        charged = 0
        try:
            if len(message) > UNCHARGED_BYTES:
                self._budget.reserve(len(message))
                charged = len(message)
            request, form = self._intake.read(message, self._caller, decoded)
            decoupled = self._is_decoupled(request)
        except Exception as error:  # noqa: BLE001 - a bug must not end the stream
            self._budget.release(charged)
            unread = request or Request("", {}, id=request_id_of(message))
            self._refuse(self._admit(Asked(self.deliver, unread, PLAIN, 0, False)), error)
            return
        asked = Asked(self.deliver, request, form, len(message), decoupled)
        asked.charged = charged
        self._submit(self._admit(asked))

    def finish(self) -> None:
        """There will be no more requests: the stream is over when all have their last response."""
        self._finished = True
        if self.over:
            self.on_ready()

    def take(self) -> Message | None:
        """The buffers of the next message to send, None when there is none now. Raises RpcError when it all ends so."""
        if self._ready:
            was_slow = self._ready.slow
            message = self._ready.take()
            if was_slow and not self._ready.slow:
                self._go_on()
            return message
        self._ready.written()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return None

    def fail(self, error: RpcError) -> None:
        """End the stream with that status, once what is ready has been taken, and take all requests back."""
        if self._failure is None:
            self._failure = error
            self._drop_requests()
            self.on_ready()

    def cancel(self) -> None:
        """The caller is gone: take all requests back. Harmless when repeated."""
        self._ready.drop()
        self._drop_requests()

    def deliver(self, asked: Asked, outcome: Outcome) -> None:
        """What the server has to say to one of the requests."""
        if asked not in self._open:
            return
        if asked.behind is not None:
            asked.behind.append(outcome)
            return
        if isinstance(outcome, NaiadError):
            self._deliver_error(asked, outcome, asked.request.version or self._latest(asked.request.model_name), True)
        elif outcome.error is not None:
            self._deliver_error(asked, outcome.error, outcome.version, outcome.final)
        elif asked.decoupled and outcome.is_empty and not asked.form.empty_final:
            self._close(asked)
        else:
            self._deliver_response(asked, outcome)

    def _submit(self, asked: Asked) -> None:
        try:
            call = self._server.submit(asked.request, asked.deliver, streams=True)
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse(asked, error)
            return
        if asked not in self._open:  # it was answered at once, and that may have ended the stream
            call.cancel()
            return
        asked.call = call
        if self._ready.slow and asked.decoupled:
            call.pause()

    def _deliver_response(self, asked: Asked, response: Response) -> None:
        try:
            if response.parameters and EXPLAIN in response.parameters:
                message = encoded_twice(response, partial(self._encoder.encode_part, response, asked.form))
            else:
                message = self._encoder.encode_part(response, asked.form)
        except TakesLong:
            asked.behind = deque()
            self._encode_large(response, asked.form, partial(self._deliver_large, asked, response))
        except Exception as error:  # noqa: BLE001 - the caller must get an answer whatever a model put into its outputs
            self._deliver_error(asked, error, response.version, response.final)
        else:
            self._deliver_encoded(asked, response, message)

    def _deliver_encoded(self, asked: Asked, response: Response, message: Message) -> None:
        if (size := sum(map(len, message))) > self._most:
            error = too_long(size, self._most, asked.request.id)
            self._deliver_error(asked, error, response.version, response.final)
        else:
            self._put(asked, message, response.final)

    def _deliver_large(self, asked: Asked, response: Response, message: Message | BaseException) -> None:
        """Deliver a response that was encoded on a thread, and then what the model has sent meanwhile."""
        behind, asked.behind = asked.behind, None
        if asked not in self._open:
            return
        if isinstance(message, BaseException):
            self._deliver_error(asked, message, response.version, response.final)
        else:
            self._deliver_encoded(asked, response, message)
        for outcome in behind or ():
            self.deliver(asked, outcome)

    def _deliver_error(self, asked: Asked, error: BaseException, version: int, final: bool) -> None:
        request = asked.request
        failure = rpc_error(error, request.id)
        if self._ends(error):
            self.fail(failure)
        else:
            told = encode_error(failure.message, request.id, request.model_name, version, final)
            self._put(asked, [told], final)

    def _refuse(self, asked: Asked, error: Exception) -> None:
        """Answer a request that did not get on its way."""
        failure = rpc_error(error, asked.request.id)
        if self._ends(error):
            self.fail(failure)
        else:
            self._put(asked, [encode_error(failure.message, asked.request.id)], True)

    def _ends(self, error: BaseException) -> bool:
        """Whether an error ends the whole stream: its caller asks for that, or the deadline of the call has passed."""
        deadline = self._caller.deadline
        if deadline is None or not isinstance(error, DeadlineExceededError):
            return self._ends_at_error
        return self._ends_at_error or monotonic() + _EARLY >= deadline

    def _admit(self, asked: Asked) -> Asked:
        self._open.add(asked)
        self._open_size += asked.size
        if not asked.decoupled:
            self._order.append(asked)
        return asked

    def _put(self, asked: Asked, message: Message, last: bool) -> None:
        """This is a response to that request, and perhaps its last."""
        if asked.decoupled:
            self._push(asked, message)
            if last:
                self._close(asked)
            return
        asked.answer = message
        size = sum(map(len, message))
        self._open_size += size - asked.size  # it holds its response now, and not its request
        asked.size = size
        if asked.charged or size > UNCHARGED_BYTES:
            self._charge(asked, size)
        while self._order and (answer := self._order[0].answer) is not None:
            first = self._order.popleft()
            self._push(first, answer)
            self._close(first)

    def _push(self, asked: Asked, message: Message) -> None:
        was_slow = self._ready.slow
        self._ready.put(asked, message)
        if self._ready.slow and not was_slow:
            for each in self._open:
                if each.decoupled and each.call is not None:
                    each.call.pause()
        self.on_ready()

    def _go_on(self) -> None:
        """The reader has caught up."""
        for asked in list(self._open):
            if asked.decoupled and asked.call is not None:
                asked.call.resume()
        self.on_room()

    def _close(self, asked: Asked) -> None:
        was_full = self.full
        self._open.discard(asked)
        self._open_size -= asked.size
        if asked.charged:
            self._charge(asked, 0)
        asked.end()
        if was_full:
            self.on_room()
        if self.over:
            self.on_ready()

    def _drop_requests(self) -> None:
        self._finished = True
        self._order.clear()
        dropped, self._open, self._open_size = self._open, set(), 0
        for asked in dropped:
            self._charge(asked, 0)
            asked.drop()
        self.on_room()

    def _charge(self, asked: Asked, size: int) -> None:
        """The request holds so many bytes now."""
        self._budget.release(asked.charged)
        asked.charged = size if size > UNCHARGED_BYTES else 0
        self._budget.add(asked.charged)

    def _is_decoupled(self, request: Request) -> bool:
        policy = self._server.model_config(request.model_name, request.version).model_transaction_policy
        return policy is not None and policy.decoupled

    def _latest(self, model: str) -> int:
        """The version that most likely had a request which asked for none."""
        try:
            return max(self._server.model_metadata(model).versions, default=0)
        except NaiadError:
            return 0


def _nothing() -> None:
    """Nobody wants to know."""
