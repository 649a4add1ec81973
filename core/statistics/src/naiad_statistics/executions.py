"""Counters of the executions of a model version on one device, advanced once for each batch."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from time import time_ns

from naiad_statistics.observers import ExecutionObserver
from naiad_statistics.reports import DeviceReport, Duration

MOST_REASONS = 32
"""The most reasons of batches that are counted apart; a scheduler with a new text each time would fill the memory."""

OTHER_REASON = "other"
"""The reason that counts all further ones together."""


@dataclass(slots=True)
class PhaseTotals:
    """The three phases of executions: how many, and the nanoseconds of each phase."""

    count: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0

    def add(self, other: "PhaseTotals") -> None:
        """Add the totals of another device."""
        self.count += other.count
        self.input_ns += other.input_ns
        self.infer_ns += other.infer_ns
        self.output_ns += other.output_ns

    def durations(self) -> tuple[Duration, Duration, Duration]:
        """Compute input, infer and output."""
        count = self.count
        return Duration(count, self.input_ns), Duration(count, self.infer_ns), Duration(count, self.output_ns)


class ExecutionCounters:
    """Counters of the executions on one device. Plain integers, because method calls made half of what counting costs.

    `observer` gets the latencies of each batch, None where there are no metrics. `reasons` counts why batches were
    closed; `phases` are those of the answered requests.
    """

    def __init__(self, observer: ExecutionObserver | None = None) -> None:
        self.successes = self.success_ns = self.queue_ns = self.inferences = self.last_ns = 0
        self.phases = PhaseTotals()
        self.by_batch_size: dict[int, PhaseTotals] = defaultdict(PhaseTotals)
        self.reasons: dict[str, int] = {}
        self.observer = observer

    @property
    def executions(self) -> int:
        """How many executions succeeded."""
        return sum(totals.count for totals in self.by_batch_size.values())

    def closed(self, reason: str) -> None:
        """A batch was closed for that reason; `OTHER_REASON` counts those beyond the first `MOST_REASONS`."""
        reasons = self.reasons
        if reason not in reasons and len(reasons) >= MOST_REASONS:
            reason = OTHER_REASON
        reasons[reason] = reasons.get(reason, 0) + 1  # in half of the time that a Counter takes

    def executed(self, batch_size: int, phases: tuple[int, int, int]) -> None:
        """An execution over `batch_size` items succeeded; `phases` are its compute input, infer and output in ns."""
        self.last_ns = time_ns()
        totals, (input_ns, infer_ns, output_ns) = self.by_batch_size[batch_size], phases
        totals.count += 1
        totals.input_ns += input_ns
        totals.infer_ns += infer_ns
        totals.output_ns += output_ns

    def succeeded(
        self,
        items: int,
        totals: Sequence[int],
        queues: Sequence[int],
        phases: tuple[int, int, int],
        streamed: bool = False,
    ) -> None:
        """Requests with `items` together were answered by one execution.

        `totals` and `queues` are the nanoseconds of each from its arrival to its answer and to its execution. The
        first responses of those that were `streamed` are counted when they are sent.
        """
        requests, counted, (input_ns, infer_ns, output_ns) = len(totals), self.phases, phases
        self.inferences += items
        self.successes += requests
        self.success_ns += sum(totals)
        self.queue_ns += sum(queues)
        counted.count += requests
        counted.input_ns += input_ns * requests
        counted.infer_ns += infer_ns * requests
        counted.output_ns += output_ns * requests
        if self.observer is not None:
            self.observer.answered(totals, queues, phases, streamed)

    def hit(self, total_ns: int) -> None:
        """A request was answered without an execution, after so many nanoseconds."""
        self.successes += 1
        self.success_ns += total_ns
        if self.observer is not None:
            self.observer.hit(total_ns)

    def first_responses(self, waits: Sequence[int]) -> None:
        """Requests got their first responses after so many nanoseconds each."""
        if self.observer is not None:
            self.observer.first_responses(waits)

    def report(self, device: int) -> DeviceReport:
        """The counters as they stand; `device` is that of the executions."""
        return DeviceReport(
            device=device,
            requests=self.successes,
            inferences=self.inferences,
            executions=self.executions,
            success_ns=self.success_ns,
            queue_ns=self.queue_ns,
            compute=self.phases.durations(),
            batch_sizes={size: totals.count for size, totals in self.by_batch_size.items()},
            observer=self.observer,
        )
