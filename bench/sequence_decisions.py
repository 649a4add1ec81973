"""What a request costs the sequence batcher: arriving, being decided on and settled, among so many live sequences."""

import argparse
import gc
import json
import random
import time
from collections.abc import Iterator

from naiad.scheduler import Scheduler, Ticket
from naiad_config import ModelConfig, ModelSequenceBatching, StrategyDirect, StrategyOldest

from naiad_scheduler_sequence.factory import SequenceBatching

_ROWS = 32
_CHUNK = 200
_LONG = 3_600_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("strategy", choices=("direct", "oldest"))
    parser.add_argument("--live", type=int, nargs="+", default=[100, 100_000], help="how many sequences are live")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3, help="the best of these counts")
    arguments = parser.parse_args()
    played = {live: Played(arguments.strategy, live) for live in arguments.live}
    best = dict.fromkeys(played, float("inf"))
    for _ in range(arguments.rounds):
        for live, each in played.items():
            best[live] = min(best[live], each.microseconds(arguments.seconds / arguments.rounds))
    print(json.dumps({"strategy": arguments.strategy, "microseconds_per_request": best}))


class Played:
    """A batcher with that many live sequences.

    Under `direct` they are on the slots of as many instances as it takes, under `oldest` all of one instance. The
    `_ROWS` that speak next, drawn by lot, go in one batch; each of them is then silent until all others have spoken.
    """

    def __init__(self, strategy: str, live: int) -> None:
        direct = strategy == "direct"
        batching = ModelSequenceBatching(
            direct=StrategyDirect() if direct else None,
            oldest=None if direct else StrategyOldest(max_candidate_sequences=live),
            max_sequence_idle_microseconds=_LONG,
        )
        config = ModelConfig(name="alone", max_batch_size=_ROWS, sequence_batching=batching)
        self._instances = -(-live // _ROWS) if direct else 1
        self._scheduler: Scheduler = SequenceBatching().create(config, self._instances)
        self._now = 0.0
        self._tickets: Iterator[int] = iter(range(1, 1 << 60))
        groups = [[name + 1 for name in range(first, live, self._instances)] for first in range(self._instances)]
        random.Random(0).shuffle(groups if direct else groups[0])
        self._order = [name for group in groups for name in group]
        for name in range(1, live + 1):
            self._scheduler.arrive(Ticket(next(self._tickets), 0.0, sequence_id=name, sequence_start=True))
        while dispatches := self._scheduler.decide(0.0, tuple(range(self._instances))).dispatches:
            for dispatch in dispatches:
                self._scheduler.settle(dispatch.tickets, 0.0)
        self._next = 0
        gc.collect()
        gc.freeze()

    def microseconds(self, seconds: float) -> float:
        """Processor time of a request in microseconds."""
        count, started = 0, time.process_time()
        while (elapsed := time.process_time() - started) < seconds:
            for _ in range(_CHUNK):
                count += self._batch()
        return elapsed / count * 1e6

    def _batch(self) -> int:
        scheduler, order, begin = self._scheduler, self._order, self._next
        names = order[begin : begin + _ROWS]
        self._next = begin + _ROWS if begin + _ROWS < len(order) else 0
        self._now = now = self._now + 1e-4
        for name in names:
            scheduler.arrive(Ticket(next(self._tickets), now, sequence_id=name))
        instance = (names[0] - 1) % self._instances
        (dispatch,) = scheduler.decide(now, (instance,)).dispatches
        scheduler.settle(dispatch.tickets, now)
        return len(names)


if __name__ == "__main__":
    main()
