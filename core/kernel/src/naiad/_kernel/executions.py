"""Counting what the instances of a model version on one device executed."""

from collections.abc import Sequence
from time import time_ns

from naiad.metrics import ExecutionObserver
from naiad.reports import DeviceReport, Duration


class Phases:
    """The three phases of executions: how many, and the nanoseconds of each phase."""

    __slots__ = ("count", "infer_ns", "input_ns", "output_ns")

    def __init__(self) -> None:
        self.count = self.input_ns = self.infer_ns = self.output_ns = 0

    def add(self, count: int, phases: tuple[int, int, int]) -> None:
        """So many executions, or requests of one, that each took this long."""
        input_ns, infer_ns, output_ns = phases
        self.count += count
        self.input_ns += input_ns * count
        self.infer_ns += infer_ns * count
        self.output_ns += output_ns * count

    def __iadd__(self, other: "Phases") -> "Phases":
        self.count += other.count
        self.input_ns += other.input_ns
        self.infer_ns += other.infer_ns
        self.output_ns += other.output_ns
        return self

    def durations(self) -> tuple[Duration, Duration, Duration]:
        """Compute input, infer and output."""
        count = self.count
        return Duration(count, self.input_ns), Duration(count, self.infer_ns), Duration(count, self.output_ns)


class Executions:
    """The counters of one device. Plain integers, because method calls made half of what counting costs.

    `observer` gets the latencies of each batch, None where there are no metrics.
    """

    __slots__ = (
        "by_batch_size",
        "executions",
        "inferences",
        "last_ns",
        "observer",
        "phases",
        "queue_ns",
        "success_ns",
        "successes",
    )

    def __init__(self, observer: ExecutionObserver | None = None) -> None:
        self.successes = self.success_ns = self.queue_ns = 0
        self.inferences = self.executions = self.last_ns = 0
        self.phases = Phases()
        self.by_batch_size: dict[int, Phases] = {}
        self.observer = observer

    def executed(self, batch_size: int, phases: tuple[int, int, int]) -> None:
        """An execution over `batch_size` items succeeded; `phases` are its compute input, infer and output in ns."""
        self.executions += 1
        self.last_ns = time_ns()
        counted = self.by_batch_size.get(batch_size)
        if counted is None:
            counted = self.by_batch_size[batch_size] = Phases()
        counted.add(1, phases)

    def succeeded(
        self,
        items: int,
        totals: Sequence[int],
        queues: Sequence[int],
        phases: tuple[int, int, int],
        streamed: bool = False,
    ) -> None:
        """Requests with so many items together were answered by one execution.

        `totals` and `queues` are the nanoseconds of each from its arrival to its answer and to its execution. The
        first responses of those that were `streamed` are counted when they are sent.
        """
        requests = len(totals)
        self.inferences += items
        self.successes += requests
        self.success_ns += sum(totals)
        self.queue_ns += sum(queues)
        self.phases.add(requests, phases)
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
        phases = self.phases
        return DeviceReport(
            device=device,
            requests=self.successes,
            inferences=self.inferences,
            executions=self.executions,
            success_ns=self.success_ns,
            queue_ns=self.queue_ns,
            compute=phases.durations(),
            batch_sizes={size: counted.count for size, counted in self.by_batch_size.items()},
            observer=self.observer,
        )
