"""One call of a model to another: begun on the event loop, delivered to a thread, ended by whoever is first."""

import functools
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

from naiad._kernel.calls.callers import Caller, left, made
from naiad._kernel.calls.flows import settle
from naiad._kernel.calls.following import lift_pauses
from naiad.errors import InternalError, NaiadError
from naiad.extend import Suspension
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.server import Outcome, SubmittedRequest
from naiad.types import Request, Response

if TYPE_CHECKING:
    from naiad._kernel.call import Deliver
    from naiad.tracing import Trace

_logger = logging.getLogger("naiad.model")

Submit = Callable[[Request, "Deliver", bool], SubmittedRequest]
"""Gives a request to the model that it names: see `ModelVersion.submit`."""


class Sink(Protocol):
    """Where the outcomes of a call go."""

    def put(self, outcome: Outcome) -> None:
        """Take an outcome; an error or a final response is the last. Called on the event loop's thread."""
        ...


class InnerCall:
    """A call on its way, of one response or, if it `streams`, of several. For the event loop's thread."""

    __slots__ = (
        "_call",
        "_caller",
        "_is_lifted",
        "_on_end",
        "_paused",
        "_sink",
        "_suspension",
        "_trace",
        "over",
        "streams",
    )

    def __init__(self, on_end: "Callable[[InnerCall], None]", streams: bool) -> None:
        self.over = False
        self.streams = streams
        self._sink: Sink | None = None
        self._on_end = on_end
        self._call: SubmittedRequest | None = None
        self._caller: Caller | None = None
        self._paused = self._is_lifted = False
        self._suspension: Suspension | None = None
        self._trace: Trace | None = None

    def deliver_to(self, sink: Sink) -> None:
        """Where the outcomes go; to be said before it begins."""
        self._sink = sink

    def begin(self, request: Request, find_caller: Callable[[], Caller | None], submit: Submit) -> None:
        """Send the request on its way; what cannot be sent ends the call with its error."""
        if self.over:
            return
        try:
            caller = self._caller = find_caller()
            if caller is not None:
                caller.begun[self] = None
                if caller.has_left:
                    raise left()
            asked = made(request) if caller is None else caller.on_behalf(request)
            self._trace = asked.trace
            self._call = submit(asked, self._deliver, self.streams)
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

    def cancel(self) -> None:
        """Take the request back; nothing is delivered any more."""
        if not self.over:
            self._end()
            self._end_suspension(_nothing)
            self._take_back()
            self._let_go()

    def pause(self) -> None:
        """The responses are taken slowly: the called model waits, unless whoever takes them waits for it meanwhile."""
        if self._is_lifted:
            return
        self._paused = True
        if self._call is not None:
            self._call.pause()
            if self._caller is not None:
                lift_pauses(self._caller)

    def lift(self) -> bool:
        """Let the responses gather from now on; whether the called model had to wait."""
        was_paused, self._is_lifted = self._paused, True
        if was_paused:
            self.resume()
        return was_paused

    def resume(self) -> None:
        """There is room for more."""
        self._paused = False
        if self._call is not None:
            self._call.resume()

    def _settle_in(self) -> None:
        """It has begun, and perhaps has been answered already: the execution gives up its grant while it waits."""
        if self.over:
            self._call = None
            return
        if self._paused and self._call is not None:
            self._call.pause()
        if self._caller is not None:
            self._suspension = self._caller.suspend()
            if self._caller.shares_resources:
                lift_pauses(self._caller)

    def _deliver(self, outcome: Outcome) -> None:
        if self.over:
            return
        if isinstance(outcome, NaiadError) or outcome.final:
            self._end()
        self._hand_on(outcome)

    def _hand_on(self, outcome: Outcome) -> None:
        """Give the outcome to whoever waits, once the execution holds again what it needs to go on with it.

        One that reads a stream goes on at once: what it needs may be held by a model that waits until it has read on.
        """
        put = functools.partial(self._put, outcome)
        if self._suspension is None or self.streams or (self._caller is not None and self._caller.reads_streams):
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
        if self._caller is not None:
            self._caller.ended(self)
        if self._trace is not None:
            self._trace.end()
        self._on_end(self)

    def _let_go(self) -> None:
        """Forget all that knows it, too: tensors would wait for the garbage collector."""
        self._sink = self._call = self._caller = None

    def _take_back(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.cancel()


def _nothing() -> None:
    """What is to be done when an execution goes on that nobody waited in."""


class OneResponse:
    """The future of a call that has one response."""

    def __init__(self) -> None:
        self.future: Future[Response] = Future()

    def put(self, outcome: Outcome) -> None:
        """Settle the future, unless whoever waited has cancelled it."""
        settle(self.future, outcome)
