"""Executions: a batch on its way through an instance, the host that executes it, and the counters of one device."""

import asyncio
import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import monotonic_ns, time_ns
from typing import Any

from naiad._engine.request_io import fetch_inputs, give_back, store_outputs
from naiad._engine.responses import ResponseBuilder
from naiad.backend import Answer, Batch, Instance, Placement
from naiad.errors import InternalError, ModelFailedError, NaiadError, WorkerDiedError, drop_tracebacks
from naiad.foreign_errors import describe_error
from naiad.metrics import ExecutionObserver
from naiad.reports import DeviceReport, Duration
from naiad.server import Outcome
from naiad.types import JoinedBatch, Trace

_logger = logging.getLogger("naiad.model")

MOST_REASONS = 32
"""So many reasons of batches are counted apart; a scheduler that gives a new text each time would fill the memory."""

OTHER_REASON = "other"
"""The reason that counts all further ones together."""


@dataclass(slots=True, eq=False)
class Execution:
    """A batch on its way to an instance and back. `tickets` and `calls` belong to the queue that made it.

    `reason` is why the batch was closed, `traces` are those of its requests that are traced; `failures` are the errors
    of requests that could not have their inputs, by their index, None where nothing is copied from or to shared memory.
    """

    slot: int
    tickets: Sequence[int]
    calls: Sequence[Any]
    batch: Batch
    reason: str
    traces: Sequence[Trace]
    failures: dict[int, NaiadError] | None = None
    answer: Answer = ()
    outcomes: Sequence[Outcome | None] = ()
    error: NaiadError | None = None
    started_ns: int = 0
    done_ns: int = 0

    def phases(self) -> tuple[int, int, int]:
        """Nanoseconds of compute input, infer and output."""
        batch = self.batch
        inputs = batch.input_done_ns or self.started_ns
        infer = batch.infer_done_ns or self.done_ns
        return inputs - self.started_ns, infer - inputs, self.done_ns - infer


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


ReadAnswer = Callable[[Answer, Batch], Sequence[Outcome | None]]
"""Makes one outcome a request of what an instance answered: see `ResponseBuilder.read`."""


class ExecutionHost:
    """What the worker of one instance needs from its model version: see `naiad.extend.WorkerHost`."""

    def __init__(
        self,
        placement: Placement,
        make: Callable[[Placement], Instance],
        responses: ResponseBuilder,
        read: ReadAnswer,
        done: Callable[[Execution], None],
    ) -> None:
        self.placement = placement
        self.loop = asyncio.get_running_loop()
        self.done = done
        self._name = placement.name
        self._make = make
        self._responses = responses
        self._read = read
        self._lends = True

    def make_instance(self) -> Instance:
        """See `WorkerHost`."""
        self._lends = True
        try:
            return self._make(self.placement)
        except NaiadError:
            raise
        except BaseException as error:  # SystemExit would end the event loop, a future refuse StopIteration
            _logger.error("making instance '%s' failed", self._name, exc_info=error)
            raise InternalError(describe_error(error)) from error

    def close_instance(self, instance: Instance) -> None:
        """See `WorkerHost`."""
        close_quietly(instance, self._name)

    def report_death(self, error: BaseException) -> str:
        """See `WorkerHost`."""
        _logger.error("the worker of instance '%s' died", self._name, exc_info=error)
        return describe_error(error)

    def died(self, reason: str, lost: Sequence[Execution]) -> None:
        """See `WorkerHost`."""
        what = f"the worker of instance '{self._name}' died while it held the request: {reason}; it is being replaced"
        for execution in lost:
            execution.done_ns, execution.error = monotonic_ns(), WorkerDiedError(what)

    def execute(self, instance: Instance, execution: Execution, executed: Callable[[Execution], None]) -> None:
        """See `WorkerHost`."""
        execution.started_ns = monotonic_ns()
        try:
            for request in execution.batch.requests:
                if request.transfer is not None:
                    execution.failures = fetch_inputs(
                        execution.batch, getattr(instance, "input_devices", ()), self._lends
                    )
                    break
            answer = (
                instance.execute(execution.batch)
                if not execution.traces
                else _execute_traced(instance, execution, self._name)
            )
        except Exception as error:  # noqa: BLE001 - a model may raise anything
            self._fail(execution, error, executed)
            return
        if isinstance(answer, Future):
            answer.add_done_callback(functools.partial(self._finish_later, execution, executed))
        else:
            execution.answer = answer
            del answer  # it may hold inputs, which only the model may still hold when they are taken back
            self._finish(execution, executed)

    def _finish(self, execution: Execution, executed: Callable[[Execution], None]) -> None:
        batch = execution.batch
        if not batch.infer_done_ns:
            batch.infer_done_ns = monotonic_ns()
        try:
            execution.outcomes, execution.answer = self._read(execution.answer, batch), ()
            if execution.failures is not None:
                execution.outcomes = store_outputs(batch, execution.outcomes, execution.failures)
                self._take_back(execution)
        except Exception as error:  # noqa: BLE001 - an answer can be broken in any way
            self._fail(execution, error, executed)
            return
        execution.done_ns = monotonic_ns()
        executed(execution)

    def _finish_later(
        self, execution: Execution, executed: Callable[[Execution], None], future: "Future[Answer]"
    ) -> None:
        try:
            execution.answer = future.result()
            self._finish(execution, executed)
        except BaseException as error:  # noqa: BLE001 - it must end neither the event loop nor the thread of a model
            self._fail(execution, error, executed)

    def _take_back(self, execution: Execution) -> None:
        """End the loans of inputs; a model that does more than read them gets copies from now on."""
        failures, plain = give_back(execution.batch)
        self._lends = self._lends and plain
        if failures:
            execution.outcomes = [failures.get(index, outcome) for index, outcome in enumerate(execution.outcomes)]

    def _fail(self, execution: Execution, error: BaseException, executed: Callable[[Execution], None]) -> None:
        if isinstance(error, NaiadError):
            execution.error = error
        else:
            ids = ", ".join(request.id for request in execution.batch.requests if request.id)
            _logger.error(
                "instance '%s' failed a batch of %d requests%s",
                self._name,
                len(execution.calls),
                f" ({ids})" if ids else "",
                exc_info=error,
                extra={"model": self._responses.model, "version": str(self._responses.version), "request_id": ids},
            )
            execution.error = ModelFailedError(f"instance '{self._name}' failed: {describe_error(error)}")
            execution.error.__cause__ = error
        drop_tracebacks(error)  # the frames hold the batch
        if execution.failures is not None:
            self._take_back(execution)
        execution.done_ns = monotonic_ns()
        executed(execution)


def _execute_traced(instance: Instance, execution: Execution, name: str) -> Answer | Any:
    """Execute a batch some of whose requests are traced; the first one's span is the current one of OpenTelemetry."""
    joined = JoinedBatch(name, execution.batch.size, len(execution.calls), execution.reason)
    for trace in execution.traces:
        trace.executing(joined, execution.started_ns)
    with execution.traces[0].current():
        return instance.execute(execution.batch)


def close_quietly(instance: Instance, name: str) -> None:
    """Close an instance; what it raises is logged, as nothing can be done about it."""
    try:
        instance.close()
    except BaseException:
        _logger.exception("closing instance '%s' failed", name)
