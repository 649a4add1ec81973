"""The dynamic batcher: decides which waiting requests form a batch, and when it is dispatched."""

from collections.abc import Sequence

from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason, Ticket
from naiad_scheduler_dynamic.fifo import Fifo
from naiad_scheduler_dynamic.open_batch import OpenBatch
from naiad_scheduler_dynamic.policies import PolicyQueue
from naiad_scheduler_dynamic.reasons import Reason

# taken out of the class once: a look into an enum costs 0.1 µs
_FULL, _PREFERRED, _DELAY, _NO_DELAY = Reason.FULL, Reason.PREFERRED, Reason.DELAY, Reason.NO_DELAY


class DynamicScheduler:
    """Merges requests into batches, in the order of the queue and without ever splitting one.

    An idle instance gets the largest preferred size that the queue can make. Where it can make none, the batch waits
    for more until its oldest request is `delay` seconds old, unless nothing can improve it: the next request has other
    shapes or would pass every preferred size. What is then sent without a delay left is as large as `max_batch_size`
    allows.
    """

    def __init__(
        self,
        *,
        queue: Fifo | PolicyQueue,
        max_batch_size: int,
        preferred_sizes: frozenset[int],
        delay: float,
        preserves_ordering: bool = False,
    ) -> None:
        self.preserves_ordering = preserves_ordering
        self._queue = queue
        self._policies = queue if isinstance(queue, PolicyQueue) else None
        self._open = OpenBatch(preferred_sizes)
        self._max = max_batch_size
        self._target = max(preferred_sizes)
        self._delay = delay
        self._wait = NOTHING  # the last answer that was nothing but a wait, to be given again

    def arrive(self, ticket: Ticket) -> Drop | None:
        """Queue a ticket; a full queue refuses it, and so does a batch size that no batch can hold."""
        if ticket.batch_size > self._max:
            detail = f"the request's batch size {ticket.batch_size} is larger than max_batch_size {self._max}"
            return Drop((ticket.id,), DropReason.INVALID, detail)
        return self._queue.push(ticket)

    def settle(self, tickets: Sequence[int], now: float) -> None:
        """Forget those of these tickets that wait; those that ran are forgotten already."""
        batch = self._open
        for ticket in tickets if batch.tickets else ():
            if ticket in batch.tickets:
                batch.remove(ticket)
        self._queue.remove(tickets)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        """Reject what is too late, then give each idle instance a batch while there is one to send."""
        policies = self._policies
        drops = () if policies is None else self._expire(policies, now)
        dispatches: list[Dispatch] = []
        wake_at = None
        for instance in idle:
            dispatch = self._form(instance, now)
            if dispatch is None:
                if self._open.tickets:
                    wake_at = self._open.oldest + self._delay
                break
            dispatches.append(dispatch)
            if policies is not None:
                policies.leave(dispatch.tickets)
        if policies is not None:
            wake_at = policies.earliest(wake_at)
        if dispatches or drops:
            return Decision(tuple(dispatches), drops, wake_at)
        if wake_at is None:
            return NOTHING
        if wake_at != self._wait.wake_at:
            self._wait = Decision(wake_at=wake_at)
        return self._wait

    def _form(self, instance: int, now: float) -> Dispatch | None:
        """The next batch for that instance, None when there is nothing to send yet."""
        batch = self._open
        stop = batch.grow(self._queue, self._target)
        if not batch.tickets:
            return None
        delay = self._delay
        expired = not delay or now >= batch.oldest + delay
        if batch.preferred and not (delay and expired):
            reason = _FULL if batch.size == self._max else _PREFERRED
            return Dispatch(instance, batch.take_preferred(), reason)
        if expired:
            if self._target < self._max:
                stop = batch.grow(self._queue, self._max)
            reason = _FULL if batch.size == self._max else stop or (_DELAY if delay else _NO_DELAY)
        elif stop is None and batch.size < self._target:
            return None
        else:
            reason = self._why_not_wait(stop)
        return Dispatch(instance, batch.take(), reason)

    def _why_not_wait(self, stop: Reason | None) -> Reason:
        if self._open.size == self._max:
            return _FULL
        if stop is Reason.SHAPE:
            return stop
        return Reason.NEXT_TOO_LARGE if self._target == self._max else Reason.PAST_PREFERRED

    def _expire(self, policies: PolicyQueue, now: float) -> tuple[Drop, ...]:
        if not policies.reordered and not policies.due(now):
            return ()
        self._open.put_back(policies)
        rejected = policies.expire(now)
        return (Drop(rejected, DropReason.TIMEOUT),) if rejected else ()
