"""One request on its way through a cache: looked up, then answered from it or sent on to its model."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol

from naiad._kernel.caching.tracing import tell_hit
from naiad._kernel.call import Call, Deliver
from naiad.cache import CachedResponse
from naiad.errors import InternalError, NaiadError
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.scheduler import Ticket
from naiad.servables import InflightRequest
from naiad.server import Outcome
from naiad.types import Request, Response

_logger = logging.getLogger("naiad.model")

Send = Callable[[Deliver], InflightRequest]
"""Sends a checked request to the queue of its model; may raise what a queue raises."""


class Front(Protocol):
    """What a lookup needs of those who began it. Every method but `landed` is for the event loop's thread."""

    def landed(self, lookup: "Lookup") -> None:
        """The cache has answered, on whichever thread."""
        ...

    def hit(self, lookup: "Lookup", cached: CachedResponse) -> Outcome | None:
        """The answer from the cache, which is counted; None, and a line in the log, for a value that is none."""
        ...

    def missed(self, lookup: "Lookup") -> None:
        """The cache has nothing; the request goes on to its model."""
        ...

    def keep(self, lookup: "Lookup", outcome: Response) -> None:
        """This is what the model answered, and nobody has it yet."""
        ...

    def left(self, lookup: "Lookup") -> None:
        """The caller has left while the cache was asked."""
        ...

    def over(self, lookup: "Lookup") -> None:
        """The cache is not awaited any more."""
        ...


class Lookup:
    """A request whose answer may be in the cache. `call` is None where the cache answered at once, with nothing.

    `started_ns` and `looked_up_ns` are when it was begun and when the cache had answered; `key` may still be unknown.
    `expired` says that the cache did not answer in time.
    """

    __slots__ = (
        "_deliver",
        "_front",
        "_send",
        "answered",
        "call",
        "expired",
        "found",
        "inner",
        "key",
        "looked_up_ns",
        "request",
        "started_ns",
        "timer",
    )

    def __init__(self, front: Front, request: Request, deliver: Deliver, send: Send, key: bytes, start_ns: int) -> None:
        self._front = front
        self._deliver = deliver
        self._send = send
        self.request = request
        self.key = key
        self.started_ns = start_ns
        self.looked_up_ns = 0
        self.answered = self.expired = False
        self.found: CachedResponse | None = None
        self.call: Call | None = None
        self.inner: InflightRequest | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def lookup_ns(self) -> int:
        """Nanoseconds from the beginning, the key included, to the cache's answer."""
        return self.looked_up_ns - self.started_ns

    def answer(self, found: CachedResponse | None) -> None:
        """What the cache has to say, on whichever thread; the first answer counts."""
        if self.answered:
            return
        self.found, self.looked_up_ns, self.answered = found, monotonic_ns(), True
        self._front.landed(self)

    def wait(self) -> Call:
        """The call of somebody who waits for what the cache says."""
        self.call = Call(self._taken_back, self.request, self._deliver, Ticket(0, self.started_ns / 1e9))
        return self.call

    def send(self) -> InflightRequest:
        """Send the request to its model. Raises what its queue raises."""
        return self._send(self._sent_back)

    def go_on(self) -> None:
        """The cache has answered and somebody waits: give them the answer, or send the request on."""
        call = self.call
        if call is None or call.over or self.inner is not None:  # a thread that was quick lands twice
            return
        self._front.over(self)
        try:
            outcome = None if self.found is None else self._front.hit(self, self.found)
            if outcome is None:
                self._front.missed(self)
                self.inner = self.send()
                return
            if self.request.trace is not None:
                tell_hit(self.request.trace, outcome)
        except NaiadError as error:
            outcome = error
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("a request to model '%s' failed behind the cache", self.request.model_name)
            outcome = InternalError(f"the request to model '{self.request.model_name}' failed: {describe_error(error)}")
        self.conclude(outcome)

    def conclude(self, outcome: Outcome) -> None:
        """This is the outcome for the one who waits."""
        call, self.call, self.inner = self.call, None, None  # they know each other, and nobody waits any more
        if call is not None:
            call.over = True
        try:
            self._deliver(outcome)
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("delivering a response of model '%s' failed", self.request.model_name)

    def _sent_back(self, outcome: Outcome) -> None:
        if isinstance(outcome, Response):
            if not outcome.final:  # more follows: this is no answer to keep
                self.key = b""
                self._deliver(outcome)
                return
            self._front.keep(self, outcome)
        self.conclude(outcome)

    def _taken_back(self, call: Call) -> None:
        inner, self.call, self.inner = self.inner, None, None
        if inner is not None:
            inner.cancel()
        else:
            self._front.over(self)
            self._front.left(self)
