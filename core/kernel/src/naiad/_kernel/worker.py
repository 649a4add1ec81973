"""The execution of a batch by an instance, on whatever thread its worker has: inputs, model, responses."""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from time import monotonic_ns
from typing import Any

from naiad._kernel.answers import AnswerReader, CodedReader
from naiad._kernel.request_io import fetch_inputs, give_back, store_outputs
from naiad.backend import Answer, Batch, Instance
from naiad.errors import InternalError, ModelFailedError, NaiadError, WorkerDiedError, drop_tracebacks
from naiad.foreign_errors import describe_error
from naiad.server import Outcome
from naiad.trace_events import JoinedBatch, record_execution_start
from naiad.tracing import Trace

_logger = logging.getLogger("naiad.model")


class Work:
    """A batch on its way to an instance and back. `tickets` and `calls` belong to the queue that made it.

    `traces` are those of its requests that are traced, and `reason`, where there are any, is why its batch was closed;
    `failures` are the errors of requests that could not have their inputs, by their index, None where nothing is copied
    from or to shared memory.
    """

    __slots__ = (
        "answer",
        "batch",
        "calls",
        "done_ns",
        "error",
        "failures",
        "outcomes",
        "place",
        "reason",
        "started_ns",
        "tickets",
        "traces",
    )

    def __init__(self, place: int, tickets: Sequence[int], calls: Sequence[Any], batch: Batch) -> None:
        self.place = place
        self.tickets = tickets
        self.calls = calls
        self.batch = batch
        self.traces: Sequence[Trace] = ()
        self.reason = ""
        self.failures: dict[int, NaiadError] | None = None
        self.answer: Answer = ()
        self.outcomes: Sequence[Outcome | None] = ()
        self.error: NaiadError | None = None
        self.started_ns = 0
        self.done_ns = 0

    def phases(self) -> tuple[int, int, int]:
        """Nanoseconds of compute input, infer and output."""
        batch = self.batch
        inputs = batch.input_done_ns or self.started_ns
        infer = batch.infer_done_ns or self.done_ns
        return inputs - self.started_ns, infer - inputs, self.done_ns - infer


class ExecutionHost:
    """What the worker of one instance needs from its model version: see `naiad.extend.WorkerHost`.

    `done` takes an executed batch back, `died` is called with the reason and the batches that are lost, both on the
    event loop's thread.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Instance],
        reader: AnswerReader | CodedReader,
        loop: asyncio.AbstractEventLoop,
        done: Callable[[Work], None],
        died: Callable[[str, Sequence[Work]], None],
    ) -> None:
        self.loop = loop
        self.done = done
        self._name = name
        self._make = make
        self._reader = reader
        self._died = died
        self._lends = True

    def make_instance(self) -> Instance:
        """See `WorkerHost`."""
        try:
            return self._make()
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

    def died(self, reason: str, lost: Sequence[Work]) -> None:
        """See `WorkerHost`."""
        for work in lost:
            work.done_ns = monotonic_ns()
            work.error = WorkerDiedError(
                f"the worker of instance '{self._name}' died while it held the request: {reason}; it is being replaced"
            )
        self._died(reason, lost)

    def execute(self, instance: Instance, work: Work, executed: Callable[[Work], None]) -> None:
        """See `WorkerHost`."""
        work.started_ns = monotonic_ns()
        try:
            for request in work.batch.requests:
                if request.transfer is not None:
                    work.failures = fetch_inputs(work.batch, getattr(instance, "input_devices", ()), self._lends)
                    break
            answer = instance.execute(work.batch) if not work.traces else _execute_traced(instance, work, self._name)
        except Exception as error:  # noqa: BLE001 - a model may raise anything, and its callers are told
            self._fail(work, error, executed)
            return
        if isinstance(answer, Future):
            answer.add_done_callback(functools.partial(self._finish_later, work, executed))
        else:
            work.answer = answer
            del answer  # it may hold inputs, which only the model may still hold when they are taken back
            self._finish(work, executed)

    def _finish(self, work: Work, executed: Callable[[Work], None]) -> None:
        batch = work.batch
        if not batch.infer_done_ns:
            batch.infer_done_ns = monotonic_ns()
        try:
            work.outcomes, work.answer = self._reader.read(work.answer, batch), ()
            if work.failures is not None:
                work.outcomes = store_outputs(batch, work.outcomes, work.failures)
                self._take_back(work)
        except Exception as error:  # noqa: BLE001 - an answer can be broken in any way, and its callers are told
            self._fail(work, error, executed)
            return
        work.done_ns = monotonic_ns()
        executed(work)

    def _finish_later(self, work: Work, executed: Callable[[Work], None], future: "Future[Answer]") -> None:
        try:
            work.answer = future.result()
            self._finish(work, executed)
        except BaseException as error:  # noqa: BLE001 - it must end neither the event loop nor the thread of a model
            self._fail(work, error, executed)

    def _take_back(self, work: Work) -> None:
        """End the loans of inputs; a model that does more than read them gets copies from now on."""
        failures, plain = give_back(work.batch)
        self._lends = self._lends and plain
        if failures:
            work.outcomes = [failures.get(index, outcome) for index, outcome in enumerate(work.outcomes)]

    def _fail(self, work: Work, error: BaseException, executed: Callable[[Work], None]) -> None:
        if isinstance(error, NaiadError):
            work.error = error
        else:
            ids = ", ".join(request.id for request in work.batch.requests if request.id)
            _logger.error(
                "instance '%s' failed a batch of %d requests%s",
                self._name,
                len(work.calls),
                f" ({ids})" if ids else "",
                exc_info=error,
                extra={"model": self._reader.model, "version": str(self._reader.version), "request_id": ids},
            )
            work.error = ModelFailedError(f"instance '{self._name}' failed: {describe_error(error)}")
            work.error.__cause__ = error
        drop_tracebacks(error)  # the frames hold the batch
        if work.failures is not None:
            self._take_back(work)
        work.done_ns = monotonic_ns()
        executed(work)


def _execute_traced(instance: Instance, work: Work, name: str) -> Answer | Any:
    """Execute a batch some of whose requests are traced; the first one's span is the current one of OpenTelemetry."""
    joined = JoinedBatch(name, work.batch.size, len(work.calls), work.reason)
    record_execution_start(work.traces, joined, work.started_ns)
    with work.traces[0].current():
        return instance.execute(work.batch)


def close_quietly(instance: Instance, name: str) -> None:
    """Close an instance; what it raises is logged, because nobody can do anything about it."""
    try:
        instance.close()
    except BaseException:
        _logger.exception("closing instance '%s' failed", name)
