"""Conformance check of schedulers, published for every scheduler."""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise

from naiad.scheduler import DropReason, Scheduler
from naiad_testing.history import Arrival, Dropped, Log, Sent
from naiad_testing.simulation import ContractBroken, ServiceTime, simulate

__all__ = ["Arrival", "ContractBroken", "Log", "check_scheduler", "random_histories", "simulate"]

_ROUNDING = 1e-9


def check_scheduler(
    make: Callable[[], Scheduler],
    *,
    max_batch_size: int,
    instances: int = 2,
    histories: Iterable[Sequence[Arrival]] | None = None,
    service_time: ServiceTime = 0.01,
    lane: Callable[[Arrival], Hashable] = lambda arrival: (arrival.priority, arrival.shape_key, arrival.sequence_id),
    deadline: Callable[[Arrival], float | None] = lambda arrival: None,
) -> None:
    """Run histories through schedulers fresh from `make` and hold the logs against the contract.

    Every ticket is answered exactly once, none is stranded; no instance gets two batches at once; a batch is no larger
    than `max_batch_size` (0: a model without batching) and of one shape; waits lie in the future; tickets of one `lane`
    leave in the order of their arrival; a ticket with a `deadline` is not sent at or after it but dropped then, and no
    other times out; asking more often changes nothing of all this; and the same history gives the same log twice.

    `lane` may give each arrival an `object()` of its own where a scheduler promises no order. Without `histories`,
    those of `random_histories` are run. Raises ContractBroken (an AssertionError) naming the history and the ticket.
    """
    if histories is None:
        histories = random_histories(max_batch_size=max_batch_size)
    for history in histories:
        for asks in ((), tuple(_between(history))):
            log = simulate(make(), history, service_time, instances, asks)
            again = simulate(make(), history, service_time, instances, asks)
            if log != again:
                raise ContractBroken(f"the same history gave two different logs; the history is {history}")
            for complaint in _complaints(log, max(1, max_batch_size), lane, deadline):
                raise ContractBroken(f"{complaint}; the history is {history}")


def random_histories(
    *, max_batch_size: int, count: int = 40, length: int = 30, seed: int = 0
) -> Iterator[tuple[Arrival, ...]]:
    """Histories with bursts and lulls, all batch sizes, two shapes, priorities 0 to 3, timeouts, callers that leave."""
    chance = random.Random(seed)  # noqa: S311 - test histories, no secrets
    for _ in range(count):
        now, history = 0.0, []
        for _ in range(length):
            now += chance.choice((0.0, 0.0, 0.0005, 0.004, 0.02))
            history.append(
                Arrival(
                    time=now,
                    batch_size=chance.randint(1, max(1, max_batch_size)),
                    shape_key=chance.choice((None, None, "other")),
                    priority=chance.randint(0, 3),
                    timeout=chance.choice((0.0, 0.0, 0.005, 0.03)),
                    leaves=now + 0.01 if chance.random() < 0.1 else None,
                )
            )
        yield tuple(history)


def _between(history: Sequence[Arrival]) -> Iterator[float]:
    for earlier, later in pairwise(history):
        yield (earlier.time + later.time) / 2


def _complaints(
    log: Log, max_batch_size: int, lane: Callable[[Arrival], Hashable], deadline: Callable[[Arrival], float | None]
) -> Iterator[str]:
    if log.stranded:
        yield f"the tickets {log.stranded} were never answered, although every instance was idle"
    yield from _batch_complaints(log, max_batch_size)
    yield from _order_complaints(log, lane)
    yield from _deadline_complaints(log, deadline)


def _batch_complaints(log: Log, max_batch_size: int) -> Iterator[str]:
    for batch in log.sent:
        if batch.size > max_batch_size:
            yield f"the batch {batch.tickets} has size {batch.size}, more than max_batch_size {max_batch_size}"
        if len({log.arrival_of(ticket).shape_key for ticket in batch.tickets}) > 1:
            yield f"the batch {batch.tickets} holds requests of different shapes"
        if not batch.reason:
            yield f"the batch {batch.tickets} was sent without a reason"


def _order_complaints(log: Log, lane: Callable[[Arrival], Hashable]) -> Iterator[str]:
    last: dict[Hashable, int] = defaultdict(int)
    for batch in log.sent:
        for ticket in batch.tickets:
            at = lane(log.arrival_of(ticket))
            if ticket < last[at]:
                yield f"ticket {ticket} was sent after ticket {last[at]}, which came later in the same lane"
            last[at] = ticket


def _deadline_complaints(log: Log, deadline: Callable[[Arrival], float | None]) -> Iterator[str]:
    for entry in log.entries:
        if not isinstance(entry, Sent | Dropped):
            continue
        for ticket in entry.tickets:
            due = deadline(log.arrival_of(ticket))
            if isinstance(entry, Sent):
                if due is not None and entry.time >= due + _ROUNDING:
                    yield f"ticket {ticket} was sent at {entry.time} s, past its deadline of {due} s"
            elif entry.reason is DropReason.TIMEOUT and (due is None or abs(entry.time - due) > _ROUNDING):
                yield f"ticket {ticket} timed out at {entry.time} s; its deadline is {due}"
