"""Observers of latencies, which a metrics service makes for each model version; counters pass on what they count."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class ExecutionObserver(Protocol):
    """Observes the latencies of one model version on one device, once a batch, on the event loop's thread."""

    def answered(
        self, totals: Sequence[int], queues: Sequence[int], phases: tuple[int, int, int], streamed: bool = False
    ) -> None:
        """The requests of one execution were answered.

        `totals` and `queues` are the nanoseconds of each from its arrival to its answer and to its execution, `phases`
        the compute input, infer and output of the batch. Unless they were `streamed`, these are their first responses.
        """

    def hit(self, total_ns: int) -> None:
        """A request was answered after so many nanoseconds, without a queue and an execution."""

    def first_responses(self, waits: Sequence[int]) -> None:
        """Requests got their first responses after so many nanoseconds each."""


@runtime_checkable
class KeepsDistributions(Protocol):
    """An observer of executions that can report the distributions of their latencies."""

    def distributions(self) -> Sequence[tuple[Sequence[float], Sequence[int]]]:
        """Of request, queue, compute input, infer and output: ascending bounds in seconds, and counts since the load.

        `counts[i]` durations were at most `bounds[i]` and more than the bound before it, the last are above all bounds.
        """


class DurationObserver(Protocol):
    """Observes the durations of one operation, on the event loop's thread."""

    def add(self, nanoseconds: int) -> None:
        """The operation took so long once."""


class VersionObserver(Protocol):
    """Makes the observers of one model version."""

    def executions(self) -> ExecutionObserver:
        """A new observer of the executions on one device."""

    def durations(self) -> DurationObserver | None:
        """A new observer of durations, None if the options ask for no summaries."""
