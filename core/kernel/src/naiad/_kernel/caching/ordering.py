"""Keeping answers in the order of their requests, where a configuration asks for it: hits would overtake the others."""

from collections import deque
from collections.abc import Callable

from naiad._kernel.call import Call, Deliver
from naiad.scheduler import Ticket
from naiad.servables import InflightRequest
from naiad.server import Outcome
from naiad.types import Request


class _Place:
    """The place of one request among the others: the call that its caller has, and the one behind it."""

    __slots__ = ("_release", "call", "inner")

    def __init__(self, release: Callable[[], None], request: Request, deliver: Deliver) -> None:
        self._release = release
        self.call = Call(self._taken_back, request, deliver, Ticket(0, 0.0))
        self.inner: InflightRequest | None = None

    def arrived(self, outcome: Outcome) -> None:
        """The answer is there; `Call.cancel` forgets it."""
        self.call.over, self.call.outcome, self.inner = True, outcome, None
        self._release()

    def _taken_back(self, call: Call) -> None:
        inner, self.inner = self.inner, None
        if inner is not None:
            inner.cancel()
        self._release()


class Order:
    """Every answer is held back until those to all earlier requests are out, but for those to models.

    An earlier request may be waiting for what its model asks, and would wait for ever.
    """

    def __init__(self) -> None:
        self._places: deque[_Place] = deque()
        self._releasing = False

    def submit(self, request: Request, deliver: Deliver, send: Callable[[Deliver], InflightRequest]) -> InflightRequest:
        """Send a request on its way; its answer keeps its place. Raises what `send` raises."""
        if request.caller is not None:
            return send(deliver)
        place = _Place(self._release, request, deliver)
        self._places.append(place)
        try:
            place.inner = send(place.arrived)
        except BaseException:
            place.call.over = True
            self._release()
            raise
        return place.call

    def _release(self) -> None:
        """Deliver what no earlier request holds back any more."""
        if self._releasing:  # who gets an answer may take another request back
            return
        self._releasing = True
        try:
            while self._places and self._places[0].call.over:
                call = self._places.popleft().call
                outcome, call.outcome = call.outcome, None
                if outcome is not None:
                    call.deliver(outcome)
        finally:
            self._releasing = False
