"""Model call: begins on the event loop, and delivers its outcomes to a thread of the calling model."""

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Protocol

from naiad.errors import InternalError, NaiadError, RequestCancelledError
from naiad.extend import Submit, Suspension
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.in_flight import Occupancy, WatchedRequest
from naiad.server import Outcome, SubmittedRequest
from naiad.types import Request, Response, Trace
from naiad_model_calls.call_scope import CallScope, derive
from naiad_model_calls.response_flow import settle

_logger = logging.getLogger("naiad.model")

FindScope = Callable[[], CallScope | None]


class Sink(Protocol):
    """Takes the outcomes of a call."""

    def put(self, outcome: Outcome) -> None:
        """Take an outcome; an error or a final response is the last. Called on the event loop's thread."""
        ...


class ModelCall:
    """A call to `model`, of one response or, if it `streams`, of several. For the event loop's thread.

    It is the `caller` of the request that it submits, and of all that are made of this one. `on_begin` is called with a
    call that a scope waits for, `on_end` with every call.
    """

    __slots__ = (
        "_is_cancelled",
        "_is_lifted",
        "_on_begin",
        "_on_end",
        "_paused",
        "_request",
        "_scope",
        "_sink",
        "_submitted",
        "_suspension",
        "_trace",
        "model",
        "over",
        "streams",
    )

    def __init__(
        self,
        model: str,
        streams: bool,
        on_begin: "Callable[[ModelCall], None]",
        on_end: "Callable[[ModelCall], None]",
    ) -> None:
        self.model = model
        self.over = False
        self.streams = streams
        self._on_begin = on_begin
        self._on_end = on_end
        self._sink: Sink | None = None
        self._submitted: SubmittedRequest | None = None
        self._scope: CallScope | None = None
        self._request: Request | None = None
        self._paused = self._is_lifted = self._is_cancelled = False
        self._suspension: Suspension | None = None
        self._trace: Trace | None = None

    @property
    def callers(self) -> Sequence[WatchedRequest]:
        """The requests that it is made for."""
        return () if self._scope is None else self._scope.requests

    @property
    def caller_model(self) -> str:
        """The model that made it; "" outside of requests."""
        return "" if self._scope is None else self._scope.model

    @property
    def is_paused(self) -> bool:
        """Whether responses wait to be taken, and the called model has to wait as well."""
        return self._paused

    def is_beside(self, other: "ModelCall") -> bool:
        """Whether both are made for the same requests."""
        return self is not other and self._scope is not None and self._scope is other._scope

    def deliver_to(self, sink: Sink) -> None:
        """Where the outcomes go; to be said before it begins."""
        self._sink = sink

    def begin(self, request: Request, find_scope: FindScope, submit: Submit) -> None:
        """Submit the request; what is refused ends the call with that error."""
        if self.over:
            return
        try:
            scope = self._scope = find_scope()
            if scope is not None:
                self._on_begin(self)
                scope.began(self)
            derived = derive(request, self) if scope is None else scope.derive(request, self)
            self._request, self._trace = derived, derived.trace
            self._submitted = submit(derived, self._deliver, self.streams)
        except NaiadError as error:
            self.abort(error)
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("a call to model '%s' failed", request.model_name)
            self.abort(InternalError(f"calling model '{request.model_name}' failed: {describe_error(error)}"))
        else:
            self._settle_in()

    def abort(self, error: NaiadError) -> None:
        """End the call with an error of its own."""
        if not self.over:
            self._end()
            self._take_back()
            self._hand_on(error)

    def request_cancellation(self, resources: Iterable[Occupancy]) -> None:
        """Ask the model to stop; what it sends all the same is delivered. A request that waits for a model is over.

        `resources` are those of the server. Those that execute for this call may be several, in an ensemble.
        """
        if self.over or self._request is None:
            return
        executing = [self._request]
        for resource in resources:
            if any(occupant.request.caller is self for occupant in resource.waiting()):
                self.abort(_cancelled())
                return
            occupants = (occupant for group in resource.users for occupant in group)
            executing += [occupant.request for occupant in occupants if occupant.request.caller is self]
        self._is_cancelled = True
        self.lift()
        for request in executing:
            _notify_cancelled(request)

    def cancel(self) -> None:
        """Take the request back; nothing is delivered any more."""
        if not self.over:
            self._end()
            self._end_suspension(_nothing)
            self._take_back()
            self._let_go()

    def pause(self) -> None:
        """The responses are taken slowly: the called model waits."""
        if self._is_lifted:
            return
        self._paused = True
        if self._submitted is not None:
            self._submitted.pause()
        if self._scope is not None:
            self._scope.lift_if_gated()

    def lift(self) -> None:
        """Let the responses gather from now on."""
        self._is_lifted = True
        if self._paused:
            self.resume()

    def resume(self) -> None:
        """There is room for more."""
        self._paused = False
        if self._submitted is not None:
            self._submitted.resume()

    def _settle_in(self) -> None:
        """It has begun, and perhaps has been answered already: the execution gives up its grant while it waits."""
        if self.over:
            self._submitted = None
            return
        if self._paused and self._submitted is not None:
            self._submitted.pause()
        if self._scope is not None:
            self._suspension = self._scope.suspend()
            self._scope.lift_if_gated()

    def _deliver(self, outcome: Outcome) -> None:
        if self.over:
            return
        if isinstance(outcome, NaiadError) or outcome.final:
            self._end()
            if self._is_cancelled and isinstance(outcome, Response) and outcome.is_empty:
                outcome = _cancelled()
        self._hand_on(outcome)

    def _hand_on(self, outcome: Outcome) -> None:
        """Give the outcome to the caller, once the execution holds again what it needs to go on with it.

        An execution that reads a stream goes on without a grant: the model that streams may hold the resources while it
        waits for this reader.
        """
        put = functools.partial(self._put, outcome)
        if self._suspension is None or self.streams or (self._scope is not None and self._scope.reads_streams):
            put()
            if self.over:
                self._end_suspension(_nothing)
        else:
            self._end_suspension(put)

    def _put(self, outcome: Outcome) -> None:
        sink = self._sink
        if self.over:
            self._let_go()
        if sink is not None:
            sink.put(outcome)

    def _end_suspension(self, go_on: Callable[[], None]) -> None:
        suspension, self._suspension = self._suspension, None
        if suspension is not None:
            suspension.resume(go_on)

    def _end(self) -> None:
        self.over = True
        if self._scope is not None:
            self._scope.ended(self)
        if self._trace is not None:
            self._trace.end()
        self._on_end(self)

    def _let_go(self) -> None:
        """Drop what refers back to it: tensors would wait for the garbage collector."""
        self._sink = self._submitted = self._scope = self._request = None

    def _take_back(self) -> None:
        call, self._submitted = self._submitted, None
        if call is not None:
            call.cancel()


def _cancelled() -> NaiadError:
    return RequestCancelledError("the model that made this call has cancelled it")


def _notify_cancelled(request: Request) -> None:
    """Notify the model that executes a request that its caller takes no more responses."""
    request.cancelled = True
    listener, request.on_cancelled = request.on_cancelled, None
    if listener is not None:
        try:
            listener()
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("model '%s' failed to take note that a request was cancelled", request.model_name)


def _nothing() -> None:
    """Nothing waits for the execution to go on."""


class OneResponse:
    """The future of a call that has one response."""

    def __init__(self) -> None:
        self.future: Future[Response] = Future()

    def put(self, outcome: Outcome) -> None:
        """Settle the future, unless the caller has cancelled it."""
        settle(self.future, outcome)
