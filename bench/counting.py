"""What counting costs a request: every counter of a model version, for batches of one and of 64 requests."""

import argparse
import time
from collections.abc import Callable
from statistics import median

from naiad._kernel.statistics import VersionCounters

_GOAL = 2.0
"""Microseconds a request."""

_PHASES = (1_000, 20_000, 3_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for size in (1, 64):
        cost = median(_microseconds(size) for _ in range(rounds))
        print(f"batches of {size}: {cost:.3f} µs a request (goal: under {_GOAL:g})")


def _microseconds(size: int, batches: int = 100_000) -> float:
    """Microseconds of processor time a request for what the queue counts of a batch of that many requests."""
    counters = VersionCounters()
    count = _one_batch(counters, size)
    for _ in range(1_000):
        count()
    started = time.process_time()
    for _ in range(batches):
        count()
    return (time.process_time() - started) / (batches * size) * 1e6


def _one_batch(counters: VersionCounters, size: int) -> Callable[[], None]:
    def count() -> None:
        counters.closed("full")
        counters.executed(size, _PHASES)
        counters.succeeded(size, size, size * 30_000, size * 6_000, _PHASES)

    return count


if __name__ == "__main__":
    main()
