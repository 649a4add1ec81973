"""Executions: a batch on its way through an instance, and the host that executes it."""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

from naiad._engine.request_io import fetch_inputs, give_back, store_outputs
from naiad._engine.responses import ResponseBuilder
from naiad.backend import Answer, Batch, Instance, Placement
from naiad.errors import InternalError, ModelFailedError, NaiadError, WorkerDiedError, drop_tracebacks
from naiad.foreign_errors import describe_error
from naiad.server import Outcome
from naiad.types import JoinedBatch, Trace

_logger = logging.getLogger("naiad.model")


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
