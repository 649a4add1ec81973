"""Conformance check of sequence schedulers, for every strategy."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise

from naiad.scheduler import Scheduler, Ticket
from naiad_testing.history import Crash, Log, SequenceHistory
from naiad_testing.sequence_histories import random_iterative_histories, random_sequence_histories
from naiad_testing.sequence_witness import Witness
from naiad_testing.simulation import ContractBroken, ServiceTime, simulate

__all__ = [
    "Crash",
    "SequenceHistory",
    "check_sequence_scheduler",
    "random_iterative_histories",
    "random_sequence_histories",
]


def check_sequence_scheduler(
    make: Callable[[], Scheduler],
    *,
    max_batch_size: int,
    slots: int,
    idle_limit: float,
    keeps_rows: bool,
    instances: int = 2,
    histories: Iterable[SequenceHistory] | None = None,
    service_time: ServiceTime = 0.01,
) -> None:
    """Run histories through schedulers fresh from `make`, and hold what they do to sequences against the contract.

    All requests of a sequence go to one instance, in order, and never two of them in a batch; with `keeps_rows` always
    to the same row, which no other sequence has meanwhile. An instance has at most `slots` sequences at a time. The
    first request of a sequence is marked, and none comes after its last; one that is over is over once, and only if
    the model has seen it. Silence ends a sequence after `idle_limit` seconds, neither earlier nor later. Requests are
    refused for what has happened, never without a reason; none waits for ever. When all is quiet no sequence is left,
    and every slot can be had again. The same history gives the same log twice, and asking more often changes no rule.

    Delays of the scheduler are to be shorter than `idle_limit`. Without `histories`, those of
    `random_sequence_histories` are run. Raises ContractBroken (an AssertionError) naming the history and the sequence.
    """
    if histories is None:
        histories = random_sequence_histories(instances=instances)
    for history in histories:
        arrivals = history.arrivals
        between = tuple((earlier.time + later.time) / 2 for earlier, later in pairwise(arrivals))
        for asks in ((), between):
            scheduler = make()
            log = simulate(scheduler, arrivals, service_time, instances, asks, history.crashes)
            if log != simulate(make(), arrivals, service_time, instances, asks, history.crashes):
                raise ContractBroken(f"the same history gave two different logs; the history is {history}")
            witness = Witness(log, max(1, max_batch_size), slots, idle_limit, keeps_rows)
            for complaint in chain(witness.complaints(), _leaks(scheduler, log, slots)):
                raise ContractBroken(f"{complaint}; the history is {history}")


def _leaks(scheduler: Scheduler, log: Log, slots: int) -> Iterator[str]:
    """Fill every slot of the scheduler that has done all this, by hand and with batches that take no time."""
    start = max((entry.time for entry in log.entries), default=0.0) + 1.0
    text = any(isinstance(arrival.sequence_id, str) for arrival in log.arrivals)
    instances, first = tuple(range(log.instances)), max(len(log.arrivals), len(log.origins)) + 1
    unsent = set(range(first, first + len(instances) * slots))
    now = start
    for ticket in sorted(unsent):
        name = f"probe {ticket}" if text else (1 << 40) + ticket
        if scheduler.arrive(Ticket(ticket, now, sequence_id=name, sequence_start=True)) is not None:
            yield f"when all was quiet a new sequence was refused, as number {ticket - first + 1}"
            return
    while unsent:
        decision = scheduler.decide(now, instances)
        if decision.ended or decision.drops or not (decision.dispatches or decision.wake_at):
            yield f"when all was quiet {len(unsent)} of {len(instances) * slots} slots could not be had again"
            return
        for dispatch in decision.dispatches:
            unsent.difference_update(dispatch.tickets)
            scheduler.settle(dispatch.tickets, now)
        if not decision.dispatches:
            now = decision.wake_at or now
