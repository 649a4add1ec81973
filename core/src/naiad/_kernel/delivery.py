"""Handing outcomes to their callers, in the order of arrival where the scheduler asks for it, and counting them."""

import logging
from collections import deque

from naiad._kernel.answers import Outcome
from naiad._kernel.call import Call
from naiad._kernel.statistics import VersionCounters
from naiad._kernel.worker import Work
from naiad.errors import NaiadError

_logger = logging.getLogger("naiad.model")


class Delivery:
    """The way out of a queue. With `ordered`, an outcome is held back until all earlier calls are over."""

    def __init__(self, model: str, counters: VersionCounters) -> None:
        self.ordered = False
        self._model = model
        self._counters = counters
        self._order: deque[Call] = deque()

    def expect(self, call: Call) -> None:
        """Remember the call's place among the others."""
        if self.ordered:
            self._order.append(call)

    def answer(self, work: Work) -> None:
        """Conclude every call of a batch that came back, and count them together."""
        phases = work.phases()
        outcomes = work.outcomes if work.error is None else [work.error] * len(work.calls)
        answered = items = total_ns = queue_ns = failed = failed_ns = 0
        for call, outcome in zip(work.calls, outcomes, strict=True):
            if call.over:
                continue
            arrival_ns = int(call.ticket.arrival * 1e9)
            if isinstance(outcome, NaiadError):
                failed += 1
                failed_ns += work.done_ns - arrival_ns
            else:
                answered += 1
                items += call.ticket.batch_size
                total_ns += work.done_ns - arrival_ns
                queue_ns += work.started_ns - arrival_ns
            self.conclude(call, outcome)
        if work.error is None:
            self._counters.executed(work.batch.size, phases)
        if answered:
            self._counters.succeeded(answered, items, total_ns, queue_ns, phases)
        if failed:
            self._counters.failed(failed, failed_ns)

    def conclude(self, call: Call, outcome: Outcome) -> None:
        """This is the outcome of the call, which is over now."""
        call.over = True
        if call.timer is not None:
            call.timer.cancel()
        if not self._order:
            self._deliver(call, outcome)
            return
        call.outcome = outcome
        self.release()

    def release(self) -> None:
        """Deliver what no earlier call holds back any more; calls that were taken back are passed over."""
        while self._order and self._order[0].over:
            call = self._order.popleft()
            if call.outcome is not None:
                self._deliver(call, call.outcome)

    def _deliver(self, call: Call, outcome: Outcome) -> None:
        try:
            call.deliver(outcome)
        except Exception:
            _logger.exception("delivering a response of model '%s' failed", self._model)
