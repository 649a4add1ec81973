"""What counting costs a request: every counter of a model version, with and without the distributions of metrics."""

import argparse
import time
from collections.abc import Callable
from statistics import median

from naiad_config import ModelConfig
from naiad_statistics.versions import VersionCounters

from naiad_metrics.config import MetricsConfig
from naiad_metrics.service import MetricsService

_GOAL = 3.0
"""Microseconds a request."""

_PHASES = (1_000, 20_000, 3_000)

_CONFIGS = {
    "statistics only (no naiad-metrics)": None,
    "and histograms (the default)": MetricsConfig(),
    "and summaries and first responses": MetricsConfig(summary_latencies=True, histogram_latencies=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for size in (1, 8, 64):
        for message, config in _CONFIGS.items():
            cost = median(_microseconds(size, config) for _ in range(rounds))
            print(f"batches of {size:2}, {message:40}: {cost:.3f} µs a request (goal: under {_GOAL:g})")


def _microseconds(size: int, config: MetricsConfig | None, requests: int = 100_000) -> float:
    """Microseconds of processor time a request for what is counted of a batch of that many requests."""
    observer = None if config is None else MetricsService(config).observer(ModelConfig())
    count = _one_batch(VersionCounters(observer), size)
    for _ in range(1_000):
        count()
    batches = requests // size
    started = time.process_time()
    for _ in range(batches):
        count()
    return (time.process_time() - started) / (batches * size) * 1e6


def _one_batch(counters: VersionCounters, size: int) -> Callable[[], None]:
    """What the queue and the delivery do for the counters, gathering the requests' times included."""
    arrivals = [30_000 + 100 * number for number in range(size)]

    def count() -> None:
        executions = counters.by_slot[0]
        executions.closed("full")
        totals: list[int] = []
        queues: list[int] = []
        for arrival in arrivals:
            totals.append(90_000 - arrival)
            queues.append(60_000 - arrival)
        executions.executed(size, _PHASES)
        executions.succeeded(size, totals, queues, _PHASES)

    return count


if __name__ == "__main__":
    main()
