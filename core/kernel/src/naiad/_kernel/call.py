"""A call: one request on its way through a queue, and how its caller takes it back or slows it down."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from naiad.foreign_errors import raise_interrupt
from naiad.scheduler import Ticket
from naiad.server import Outcome
from naiad.types import Request, Response

if TYPE_CHECKING:
    from naiad._kernel.calls.callers import Caller
    from naiad.servables import CapacityWait

_logger = logging.getLogger("naiad.model")

Deliver = Callable[[Outcome], None]
"""Gets the responses of a call, or its error, on the event loop's thread; the last one ends the call."""

NO_PHASES = (0, 0, 0)


class OpenStream(Protocol):
    """The responses that a model sends one by one, as the call sees them."""

    @property
    def ended(self) -> bool:
        """Whether the model has sent its last one."""
        ...

    def release(self) -> None:
        """Let the senders that wait for room go on."""
        ...


class Call:
    """One request on its way through a queue. `cancel` says that the caller went away: nothing more is delivered.

    Every method is for the event loop's thread. `callers` are those who call other models on behalf of the request.
    `over` says that no outcome is awaited any more; `held` are responses that earlier calls hold back, `stream` the
    responses that the model sends one by one. `arrival` is when the request came; its `ticket` is another one when it
    is executed again. `codec_state` belongs to the batch codec of the queue, where there is one. `queue_ns` and
    `phases` are how long an answered one waited, and took for compute input, infer and output.
    """

    __slots__ = (
        "_behind",
        "_held_back",
        "_paused",
        "_take_back",
        "arrival",
        "callers",
        "codec_state",
        "deliver",
        "held",
        "outcome",
        "over",
        "phases",
        "queue_ns",
        "request",
        "stream",
        "ticket",
        "timer",
    )

    def __init__(self, take_back: "Callable[[Call], None]", request: Request, deliver: Deliver, ticket: Ticket) -> None:
        self._take_back = take_back
        self.request = request
        self.deliver = deliver
        self.ticket = ticket
        self.arrival = ticket.arrival
        self.over = False
        self.held: deque[Response] | None = None
        self.outcome: Outcome | None = None
        self.stream: OpenStream | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.callers: tuple[Caller, ...] = ()
        self.codec_state: Any = None
        self.queue_ns = 0
        self.phases = NO_PHASES
        self._paused = False

    @property
    def is_held_up(self) -> bool:
        """Whether the model is to wait before it sends more.

        Not for an earlier call that may have to be executed again, which takes the very thread that would wait.
        """
        waits = self._paused or (self.held is not None and self._held_back)
        return waits and not self.over

    def hold(self, response: Response, requeues: bool) -> None:
        """Keep a response back until all earlier calls are over; `requeues` says that these may execute again."""
        if self.held is None:
            self.held = deque()
            self._held_back = not requeues  # read only while responses are held: every request goes through __init__
        self.held.append(response)

    @property
    def behind(self) -> "Sequence[CapacityWait]":
        """The waits for a capacity that it is paused for."""
        return getattr(self, "_behind", ())  # set for few: every request goes through __init__

    @property
    def is_paused(self) -> bool:
        """Whether the caller reads slowly."""
        return self._paused and not self.over

    def pause(self, behind: "Sequence[CapacityWait]" = ()) -> None:
        """Say that the caller reads slowly: a model that streams waits. What is on its way is still delivered.

        `behind` are the waits for a capacity that keep the caller from reading.
        """
        self._paused = True
        self._behind = behind

    def resume(self) -> None:
        """Say that the caller has room again."""
        self._paused = False
        self._behind = ()
        if self.stream is not None:
            self.stream.release()

    def cancel(self) -> None:
        """Forget the request, and an outcome that earlier calls hold back; harmless after delivery."""
        self.outcome = self.held = None
        if not self.over:
            self.over = True
            self._take_back(self)

    def tell_model(self) -> None:
        """Let the model know that nobody waits for what it is working on."""
        request = self.request
        request.cancelled = True
        if self.stream is not None:
            self.stream.release()
        for caller in self.callers:
            caller.look_whether_left()
        listener, request.on_cancelled = request.on_cancelled, None
        if listener is not None:
            try:
                listener()
            except BaseException as error:
                raise_interrupt(error)
                _logger.exception("model '%s' failed to take note that a request was cancelled", request.model_name)
