"""A worker: the one thread on which an instance is made, warmed up, executed and closed."""

import asyncio
import functools
import logging
import queue
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from time import monotonic_ns
from typing import Any

from naiad._kernel.answers import AnswerReader, Outcome
from naiad._kernel.transferring import fetch_inputs, give_back, store_outputs
from naiad.backend import Answer, Batch, Instance
from naiad.errors import InternalError, ModelFailedError, NaiadError, WorkerDiedError, drop_tracebacks
from naiad.foreign_errors import describe_error
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


class Worker:
    """Owns one instance and its thread.

    Everything that happens is told on the event loop: `on_done(work)` after each batch, `on_death(worker, reason,
    works)` when the thread dies, with the batches it had not answered; each batch is told of once. Which batches are
    under way is known to the loop's thread alone, so that a death cannot race with an answer. Crossing back costs one
    wake-up of the loop a batch. `started` and `ended` are set by the thread.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Instance],
        reader: AnswerReader,
        loop: asyncio.AbstractEventLoop,
        on_done: Callable[[Work], None],
        on_death: Callable[["Worker", str, Sequence[Work]], None],
    ) -> None:
        self.name = name
        self.started: Future[Instance] = Future()
        self.ended: Future[None] = Future()
        self._make = make
        self._reader = reader
        self._loop = loop
        self._on_done = on_done
        self._on_death = on_death
        self._inbox: queue.SimpleQueue[Work | Callable[[Instance], None] | None] = queue.SimpleQueue()
        self._flying: dict[int, Work] = {}
        self._lends = True

    @property
    def executing(self) -> Collection[Work]:
        """The batches that it was given and has not handed back. For the event loop's thread."""
        return self._flying.values()

    @property
    def busy_since_ns(self) -> int:
        """Since when (`time.monotonic_ns`) the oldest batch executes, 0 when none does."""
        return min((work.started_ns for work in self._flying.values() if work.started_ns), default=0)

    def start(self) -> None:
        """Make the instance on the thread that will execute it; `started` tells when, or why not."""
        for future in (self.started, self.ended):
            future.set_running_or_notify_cancel()  # who stops waiting for the thread must not cancel what it sets
        self._begin()

    def execute(self, work: Work) -> None:
        """Run a batch as soon as the thread is free; never blocks. Called on the event loop's thread."""
        self._flying[work.place] = work
        self._inbox.put(work)

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance, on its thread, after what was given to it before; never blocks."""
        self._inbox.put(instruction)

    def stop(self) -> None:
        """Close the instance after what was given to it before; never blocks. `ended` tells when it has."""
        self._inbox.put(None)

    def _begin(self) -> None:
        threading.Thread(target=self._run, name=f"naiad-{self.name}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._live()
        finally:
            self.ended.set_result(None)

    def _live(self) -> None:
        try:
            instance = self._make()
        except BaseException as error:  # noqa: BLE001 - whatever it was, the one who waits for the instance is told
            self.started.set_exception(tellable(error, self.name))
            return
        self.started.set_result(instance)
        try:
            while (work := self._inbox.get()) is not None:
                if isinstance(work, Work):
                    self._execute(instance, work)
                else:
                    work(instance)
                del work  # an idle worker must not keep a batch's tensors alive
        except BaseException as error:  # noqa: BLE001 - a model that wants to end the process only loses its instance
            self._report_death(error)
            self._tell(self._bury, describe_error(error))
        close_quietly(instance, self.name)

    def _execute(self, instance: Instance, work: Work) -> None:
        work.started_ns = monotonic_ns()
        try:
            for request in work.batch.requests:
                if request.transfer is not None:
                    work.failures = fetch_inputs(work.batch, getattr(instance, "input_devices", ()), self._lends)
                    break
            answer = instance.execute(work.batch) if not work.traces else _execute_traced(instance, work, self.name)
        except Exception as error:  # noqa: BLE001 - a model may raise anything, and its callers are told
            self._fail(work, error)
            return
        if isinstance(answer, Future):
            answer.add_done_callback(functools.partial(self._finish_later, work))
        else:
            work.answer = answer
            del answer  # it may hold inputs, which only the model may still hold when they are taken back
            self._finish(work)

    def _finish(self, work: Work) -> None:
        batch = work.batch
        if not batch.infer_done_ns:
            batch.infer_done_ns = monotonic_ns()
        try:
            work.outcomes, work.answer = self._reader.read(work.answer, batch), ()
            if work.failures is not None:
                work.outcomes = store_outputs(batch, work.outcomes, work.failures)
                self._take_back(work)
        except Exception as error:  # noqa: BLE001 - an answer can be broken in any way, and its callers are told
            self._fail(work, error)
            return
        self._hand_back(work)

    def _finish_later(self, work: Work, future: "Future[Answer]") -> None:
        try:
            work.answer = future.result()
            self._finish(work)
        except BaseException as error:  # noqa: BLE001 - it must end neither the event loop nor the thread of a model
            self._fail(work, error)

    def _take_back(self, work: Work) -> None:
        """End the loans of inputs; a model that does more than read them gets copies from now on."""
        failures, plain = give_back(work.batch)
        self._lends = self._lends and plain
        if failures:
            work.outcomes = [failures.get(index, outcome) for index, outcome in enumerate(work.outcomes)]

    def _fail(self, work: Work, error: BaseException) -> None:
        if isinstance(error, NaiadError):
            work.error = error
        else:
            ids = ", ".join(request.id for request in work.batch.requests if request.id)
            _logger.error(
                "instance '%s' failed a batch of %d requests%s",
                self.name,
                len(work.calls),
                f" ({ids})" if ids else "",
                exc_info=error,
                extra={"model": self._reader.model, "version": str(self._reader.version), "request_id": ids},
            )
            work.error = ModelFailedError(f"instance '{self.name}' failed: {describe_error(error)}")
            work.error.__cause__ = error
        drop_tracebacks(error)  # the frames hold the batch
        if work.failures is not None:
            self._take_back(work)
        self._hand_back(work)

    def _hand_back(self, work: Work) -> None:
        work.done_ns = monotonic_ns()
        self._tell(self._arrived, work)

    def _arrived(self, work: Work) -> None:
        if self._flying.get(work.place) is work:
            del self._flying[work.place]
            self._on_done(work)

    def _report_death(self, error: BaseException) -> None:
        _logger.error("the worker of instance '%s' died", self.name, exc_info=error)

    def _bury(self, reason: str) -> None:
        lost = tuple(self._flying.values())
        self._flying.clear()
        for work in lost:
            work.done_ns = monotonic_ns()
            work.error = WorkerDiedError(
                f"the worker of instance '{self.name}' died while it held the request: {reason}; it is being replaced"
            )
        self._on_death(self, reason, lost)

    def _tell(self, listener: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(listener, *arguments)
        except RuntimeError:  # the loop was closed before this worker ended: nobody is left to be told
            _logger.debug("instance '%s' ended after its event loop", self.name)


MakeWorker = Callable[..., Worker]
"""Makes a worker of what `Worker` takes."""


def _execute_traced(instance: Instance, work: Work, name: str) -> Answer | Any:
    """Execute a batch some of whose requests are traced; the first one's span is the current one of OpenTelemetry."""
    joined = JoinedBatch(name, work.batch.size, len(work.calls), work.reason)
    record_execution_start(work.traces, joined, work.started_ns)
    with work.traces[0].current():
        return instance.execute(work.batch)


def tellable(error: BaseException, name: str) -> NaiadError:
    """An error that a future can carry into the event loop: SystemExit would end the loop, StopIteration be refused."""
    if isinstance(error, NaiadError):
        return error
    _logger.error("making instance '%s' failed", name, exc_info=error)
    failure = InternalError(describe_error(error))
    failure.__cause__ = error
    return failure


def close_quietly(instance: Instance, name: str) -> None:
    """Close an instance; what it raises is logged, because nobody can do anything about it."""
    try:
        instance.close()
    except BaseException:
        _logger.exception("closing instance '%s' failed", name)
