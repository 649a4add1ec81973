"""Response ordering: delivers responses in the order of the requests, so that hits do not overtake misses."""

from collections import deque
from collections.abc import Callable

from naiad.extend import HeldRequest, StageContext, Submit
from naiad.foreign_errors import logged
from naiad.server import Deliver, Outcome, SubmittedRequest
from naiad.types import Request


class _Turn:
    """The turn of one request among the others: `held` is what its caller has, `passed_on` the request behind it."""

    __slots__ = ("_deliver", "_release", "held", "is_answered", "outcome", "passed_on")

    def __init__(self, release: Callable[[], None], context: StageContext, request: Request, deliver: Deliver) -> None:
        self._release = release
        self._deliver = deliver
        self.held: HeldRequest = context.hold(request, deliver, self._cancelled)
        self.passed_on: SubmittedRequest | None = None
        self.outcome: Outcome | None = None
        self.is_answered = False

    def answered(self, outcome: Outcome) -> None:
        """The outcome is there, and waits for its turn."""
        self.is_answered, self.outcome, self.passed_on = True, outcome, None
        self._release()

    def deliver(self) -> None:
        """It is its turn: deliver the outcome, unless the caller has gone."""
        outcome, self.outcome = self.outcome, None
        self.held.over = True
        if outcome is not None:
            with logged("delivering a response"):
                self._deliver(outcome)

    def _cancelled(self) -> None:
        passed_on, self.passed_on = self.passed_on, None
        self.is_answered, self.outcome = True, None
        if passed_on is not None:
            passed_on.cancel()
        self._release()


class Order:
    """Delivers responses in the order of the requests, but at once to calls of models.

    An earlier request may wait for such a call, which would be a deadlock.
    """

    def __init__(self, context: StageContext, submit: Submit) -> None:
        self._context = context
        self._submit = submit
        self._turns: deque[_Turn] = deque()
        self._releasing = False

    def submit(self, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
        """Pass a request on; its response waits for its turn. Raises what passing it on raises."""
        if request.caller is not None:
            return self._submit(request, deliver, streams)
        turn = _Turn(self._release, self._context, request, deliver)
        self._turns.append(turn)
        try:
            turn.passed_on = self._submit(request, turn.answered, streams)
        except BaseException:
            turn.held.over = turn.is_answered = True
            self._release()
            raise
        return turn.held

    def _release(self) -> None:
        """Deliver what no earlier request holds back any more."""
        if self._releasing:  # the receiver of a response may cancel another request
            return
        self._releasing = True
        try:
            while self._turns and self._turns[0].is_answered:
                self._turns.popleft().deliver()
        finally:
            self._releasing = False
