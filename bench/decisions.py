"""How many decisions a second the dynamic batcher makes with a queue that stays at one length."""

import argparse
import json
import time

from naiad.scheduler import Scheduler, Ticket
from naiad_config import ModelConfig, ModelDynamicBatching, ModelQueuePolicy, TimeoutAction

from naiad_scheduler_dynamic.factory import DynamicBatching

_BATCH = 8
_CHUNK = 2_000
_LATE = ModelQueuePolicy(timeout_action=TimeoutAction.DELAY, default_timeout_microseconds=3_600_000_000)
_KINDS = {
    "plain": ModelDynamicBatching(),
    "delay": ModelDynamicBatching(preferred_batch_size=(4, 8), max_queue_delay_microseconds=1_000),
    "policies": ModelDynamicBatching(priority_levels=3, default_priority_level=2, default_queue_policy=_LATE),
}
_LEVELS = (2, 1, 2, 3)
"""Priorities of the requests, over and over."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=_KINDS)
    parser.add_argument("--queue", type=int, default=10, help="requests that wait when a decision is made")
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    config = ModelConfig(name="alone", max_batch_size=_BATCH, dynamic_batching=_KINDS[arguments.kind])
    rate = decisions_per_second(DynamicBatching().create(config, 1), arguments.queue, arguments.seconds)
    print(json.dumps({"decisions_per_second": rate}))


def decisions_per_second(scheduler: Scheduler, queue: int, seconds: float) -> float:
    """Decisions a second of processor time, with a queue of that length.

    The queue is filled first and then keeps its length: as many requests arrive before each decision as it sends.
    """
    tickets = iter(range(1, 1 << 60))

    def arrive(count: int, now: float) -> None:
        for _ in range(count):
            number = next(tickets)
            scheduler.arrive(Ticket(number, now, priority=_LEVELS[number % 4]))

    now = 0.0
    arrive(queue - _BATCH, now)
    count, started = 0, time.process_time()
    while (elapsed := time.process_time() - started) < seconds:
        for _ in range(_CHUNK):
            now += 1e-4
            arrive(_BATCH, now)
            (dispatch,) = scheduler.decide(now, (0,)).dispatches
            scheduler.settle(dispatch.tickets, now)
        count += _CHUNK
    return count / elapsed


if __name__ == "__main__":
    main()
