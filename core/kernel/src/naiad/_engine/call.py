"""A call: one request on its way through a queue, which its caller may cancel or slow down."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from naiad.foreign_errors import raise_interrupt
from naiad.in_flight import Occupant
from naiad.scheduler import Ticket
from naiad.server import Deliver, Outcome
from naiad.types import Request, Response

_logger = logging.getLogger("naiad.model")


class OpenStream(Protocol):
    """The responses that a model sends one by one, as the call sees them."""

    @property
    def ended(self) -> bool:
        """Whether the model has sent its last one."""
        ...

    def release(self) -> None:
        """Let the senders that wait for room go on."""
        ...


@dataclass(slots=True, eq=False)
class Call:
    """One request on its way through a queue. Every method is for the event loop's thread.

    `arrival` is when the request came; its `ticket` is another one when it is executed again. `over` says that no
    outcome is awaited any more; `ordered` that its responses wait for those of earlier calls; `held` are responses that
    earlier calls hold back, `stream` the responses that the model sends one by one. `codec_state` belongs to the batch
    codec. `queue_ns`, `phases` and `joined` are those of `InflightRequest`, `waits_for` the requests it is paused for.
    """

    _take_back: "Callable[[Call], None]"
    request: Request
    deliver: Deliver
    ticket: Ticket
    arrival: float
    over: bool = False
    ordered: bool = False
    held: deque[Response] | None = None
    outcome: Outcome | None = None
    stream: OpenStream | None = None
    timer: asyncio.TimerHandle | None = None
    codec_state: Any = None
    queue_ns: int = 0
    phases: tuple[int, int, int] = (0, 0, 0)
    joined: tuple[int, object] | tuple[()] = ()
    waits_for: Sequence[Occupant] = ()
    _paused: bool = False
    _unblocked: bool = False
    _watchers: tuple[Callable[[], None], ...] = ()
    _holds_model: bool = field(init=False)  # read only while responses are held

    @property
    def is_held_up(self) -> bool:
        """Whether the model is to wait before it sends more."""
        return (self._paused or (self.held is not None and self._holds_model)) and not self.over

    def hold(self, response: Response, holds_model: bool) -> None:
        """Keep a response back until all earlier calls are over; with `holds_model` the model waits until then."""
        if self.held is None:
            self.held, self._holds_model = deque(), holds_model
        self.held.append(response)

    def free_model(self) -> None:
        """Let the model send although earlier calls hold its responses back."""
        self._holds_model = False
        if self.stream is not None:
            self.stream.release()

    @property
    def is_paused(self) -> bool:
        """Whether the caller reads slowly."""
        return self._paused and not self.over

    def pause(self, behind: Sequence[Occupant] = ()) -> None:
        """The caller reads slowly: a model that streams waits. What is on its way is still delivered.

        `behind` are the requests that keep the caller from reading.
        """
        if not (behind and self._unblocked):
            self._paused = True
            self.waits_for = behind

    def unblock(self) -> None:
        """Let the model send from now on whatever other requests keep the caller from reading."""
        self._unblocked = True
        if self.waits_for:
            self.resume()

    def watch(self, listener: Callable[[], None]) -> None:
        """Call that when nobody waits for the answer any more."""
        self._watchers = (*self._watchers, listener)

    def unwatch(self, listener: Callable[[], None]) -> None:
        """Call that no more."""
        self._watchers = tuple(each for each in self._watchers if each != listener)

    def resume(self) -> None:
        """The caller has room again."""
        self._paused = False
        self.waits_for = ()
        if self.stream is not None:
            self.stream.release()

    def cancel(self) -> None:
        """The caller has gone: nothing more is delivered, not even what earlier calls hold back. May be repeated."""
        self.outcome = self.held = None
        if not self.over:
            self.over = True
            self._take_back(self)

    def notify_model(self) -> None:
        """Let the model know that no outcome of what it executes is awaited any more."""
        request = self.request
        request.cancelled = True
        if self.stream is not None:
            self.stream.release()
        listener, request.on_cancelled = request.on_cancelled, None
        if listener is not None:
            try:
                listener()
            except BaseException as error:
                raise_interrupt(error)
                _logger.exception("model '%s' failed to take note that a request was cancelled", request.model_name)
        for watcher in self._watchers:  # last: a model whose calls end finds that its request is cancelled
            watcher()
