"""Lookup of one request: in the cache first, then a hit is delivered or a miss is submitted to the model."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol

from naiad.errors import InternalError, NaiadError
from naiad.extend import HeldRequest
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.server import Deliver, Outcome, SubmittedRequest
from naiad.types import Request, Response, Trace
from naiad_kit.caches import CachedResponse

_logger = logging.getLogger("naiad.model")


class LookupOwner(Protocol):
    """What a lookup needs of the stage that began it. Every method but `landed` is for the event loop's thread."""

    def landed(self, lookup: "Lookup") -> None:
        """The cache has answered, on any thread."""
        ...

    def hit(self, lookup: "Lookup", cached: CachedResponse) -> Outcome | None:
        """The response from the cache, which is counted; None, and a line in the log, for a value of another type."""
        ...

    def missed(self, lookup: "Lookup") -> None:
        """The cache has nothing; the request goes on to its model."""
        ...

    def keep(self, lookup: "Lookup", outcome: Response) -> None:
        """The model answered; no caller has the outcome yet."""
        ...

    def cancelled(self, lookup: "Lookup") -> None:
        """The caller has gone while the cache was asked."""
        ...

    def over(self, lookup: "Lookup") -> None:
        """The cache is not awaited any more."""
        ...

    def hold(self, request: Request, deliver: Deliver, cancelled: Callable[[], None]) -> HeldRequest:
        """As `StageContext.hold`."""
        ...

    def pass_on(self, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
        """The way on to the model. Raises what its queue raises."""
        ...


class Lookup:
    """A request whose answer may be in the cache.

    `held` is the request as its caller sees it; None after a miss that was reported at once. `started_ns` and
    `looked_up_ns` are when it was begun and when the cache had answered; `key` may still be unknown. `expired` says
    that the cache did not answer in time.
    """

    __slots__ = (
        "_deliver",
        "_owner",
        "_streams",
        "answered",
        "expired",
        "held",
        "key",
        "looked_up_ns",
        "passed_on",
        "request",
        "response",
        "started_ns",
        "timer",
    )

    def __init__(
        self, owner: LookupOwner, request: Request, deliver: Deliver, streams: bool, key: bytes, started_ns: int
    ) -> None:
        self._owner = owner
        self._deliver = deliver
        self._streams = streams
        self.request = request
        self.key = key
        self.started_ns = started_ns
        self.looked_up_ns = 0
        self.answered = self.expired = False
        self.response: CachedResponse | None = None
        self.held: HeldRequest | None = None
        self.passed_on: SubmittedRequest | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def lookup_ns(self) -> int:
        """Nanoseconds from the beginning, the key included, to the cache's answer."""
        return self.looked_up_ns - self.started_ns

    def answer(self, response: CachedResponse | None) -> None:
        """The answer of the cache, on any thread; the first one counts."""
        if self.answered:
            return
        self.response, self.looked_up_ns, self.answered = response, monotonic_ns(), True
        self._owner.landed(self)

    def wait(self) -> HeldRequest:
        """Hold the request until the cache has answered."""
        self.held = self._owner.hold(self.request, self._deliver, self._cancelled)
        return self.held

    def pass_on(self) -> SubmittedRequest:
        """Pass the request on to its model. Raises what its queue raises."""
        return self._owner.pass_on(self.request, self._answered_by_model, self._streams)

    def go_on(self) -> None:
        """The cache has answered and the caller waits: deliver the answer, or pass the request on."""
        held = self.held
        if held is None or held.over or self.passed_on is not None:  # a thread that was quick lands twice
            return
        self._owner.over(self)
        try:
            outcome = None if self.response is None else self._owner.hit(self, self.response)
            if outcome is None:
                self._owner.missed(self)
                self.passed_on = self.pass_on()
                return
            if self.request.trace is not None:
                record_hit(self.request.trace, outcome)
        except NaiadError as error:
            outcome = error
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("a request to model '%s' failed behind the cache", self.request.model_name)
            outcome = InternalError(f"the request to model '{self.request.model_name}' failed: {describe_error(error)}")
        self.conclude(outcome)

    def conclude(self, outcome: Outcome) -> None:
        """Deliver the outcome to the caller that waits."""
        held, self.held, self.passed_on = self.held, None, None  # which refer to this object
        if held is not None:
            held.over = True
        try:
            self._deliver(outcome)
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("delivering a response of model '%s' failed", self.request.model_name)

    def _answered_by_model(self, outcome: Outcome) -> None:
        if isinstance(outcome, Response):
            if not outcome.final:  # more follows: this is no answer to keep
                self.key = b""
                self._deliver(outcome)
                return
            self._owner.keep(self, outcome)
        self.conclude(outcome)

    def _cancelled(self) -> None:
        passed_on, self.held, self.passed_on = self.passed_on, None, None
        if passed_on is not None:
            passed_on.cancel()
        else:
            self._owner.over(self)
            self._owner.cancelled(self)


def record_lookup(trace: Trace, started_ns: int, ended_ns: int, hit: bool) -> None:
    """Record the start and the end of a lookup, by `time.monotonic_ns()`."""
    kind = "CACHE_HIT" if hit else "CACHE_MISS"
    trace.record(f"{kind}_LOOKUP_START", started_ns)
    trace.record(f"{kind}_LOOKUP_END", ended_ns)


def record_hit(trace: Trace, outcome: Outcome) -> None:
    """Record the response from the cache, which ends the request."""
    trace.responded(outcome)
    trace.record("REQUEST_END")
