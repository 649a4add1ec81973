"""A model queue whose batches land in a list, where a test finishes them by hand."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from time import monotonic, monotonic_ns

from naiad._engine.call import Call
from naiad._engine.execution import Execution
from naiad._engine.queue import ModelQueue
from naiad._engine.responses import ResponseBuilder
from naiad.default_scheduler import FifoScheduler
from naiad.errors import NaiadError
from naiad.extend import ExecutionGate
from naiad.scheduler import Scheduler
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_config import ModelConfig
from naiad_statistics.reports import ModelStatistics
from naiad_statistics.versions import VersionCounters
from naiad_testing.loops import turns


class DrivenQueue:
    """`sent` are the batches that execute; `outcomes` what each request, by its id, was delivered."""

    def __init__(
        self,
        make_scheduler: Callable[[], Scheduler] = FifoScheduler,
        slots: int = 1,
        config: ModelConfig | None = None,
        gate: ExecutionGate | None = None,
        lowest_first: bool = False,
    ) -> None:
        self.sent: list[Execution] = []
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self.counters = VersionCounters(devices=[-1] * slots)
        reader = ResponseBuilder(config or ModelConfig(name="m"), 1)
        self.queue = ModelQueue(reader, self.counters, gate)
        self.queue.open(make_scheduler, [self.sent.append] * slots, lowest_first=lowest_first)
        for slot in range(slots):
            self.queue.free(slot)

    @property
    def statistics(self) -> ModelStatistics:
        return self.counters.report("m", 1, ())

    def submit(self, name: str, batch_size: int = 1, seconds: float | None = None, timeout: int = 0) -> Call:
        """A call; `seconds` from now is its deadline."""
        deadline = None if seconds is None else monotonic() + seconds
        request = Request("m", {}, id=name, deadline=deadline, timeout_microseconds=timeout)
        return self.queue.submit(request, batch_size, None, self.outcomes[name].append)

    async def executing(self) -> list[list[str]]:
        """The ids of the requests of each batch that executes, after what is ready has happened."""
        await turns()
        return [[request.id for request in execution.batch.requests] for execution in self.sent]

    def finish(
        self,
        index: int = 0,
        errors: Mapping[str, NaiadError] | None = None,
        at_ms: tuple[int, int, int, int] | None = None,
    ) -> None:
        """Answer a batch that executes.

        `at_ms` is when it started, had its inputs, had inferred and was done, in ms after its first request's arrival.
        """
        execution = self._taken(index)
        if at_ms is not None:
            arrival = int(execution.calls[0].ticket.arrival * 1e9)
            times = [arrival + ms * 1_000_000 for ms in at_ms]
            execution.started_ns, execution.batch.input_done_ns, execution.batch.infer_done_ns, execution.done_ns = (
                times
            )
        execution.outcomes = [
            (errors or {}).get(request.id) or Response("m", 1, request.id, {}) for request in execution.batch.requests
        ]
        self.queue.done(execution)

    def fail(self, error: NaiadError, index: int = 0) -> None:
        """Fail a batch that executes."""
        execution = self._taken(index)
        execution.error = error
        self.queue.done(execution)

    def die(self, error: NaiadError, index: int = 0) -> None:
        """Lose a batch that executes with its worker."""
        execution = self._taken(index)
        execution.error = error
        self.queue.lose(execution.slot)
        self.queue.lost(execution)

    async def is_drained(self) -> bool:
        """Whether the queue says now that nothing waits or executes."""
        drained = asyncio.ensure_future(self.queue.drained())
        await turns()
        done = drained.done()
        drained.cancel()
        return done

    def answered(self) -> set[str]:
        """The ids of the requests that have a response."""
        return {name for name, each in self.outcomes.items() if each and isinstance(each[0], Response)}

    def error(self, name: str) -> NaiadError:
        """The error that a request was delivered, and nothing else."""
        (outcome,) = self.outcomes[name]
        assert isinstance(outcome, NaiadError)
        return outcome

    def _taken(self, index: int) -> Execution:
        execution = self.sent.pop(index)
        execution.started_ns = execution.started_ns or monotonic_ns()
        execution.done_ns = monotonic_ns()
        return execution
