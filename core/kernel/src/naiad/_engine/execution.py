"""Executions: a batch on its way through an instance, and the instance with its state, which a worker runs."""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic, monotonic_ns
from typing import Any

from naiad._engine.readiness import ReadyCheck, ready_check_of
from naiad._engine.request_io import fetch_inputs, give_back, store_outputs
from naiad._engine.responses import ResponseBuilder
from naiad.backend import Answer, Batch, Instance, Placement
from naiad.errors import InternalError, ModelFailedError, NaiadError, WorkerDiedError, drop_tracebacks
from naiad.extend import Worker
from naiad.reports import InstanceReport
from naiad.server import Outcome
from naiad.types import JoinedBatch, Trace
from naiad_config.user_code import describe_failure, from_user_code

_logger = logging.getLogger("naiad.model")

LONGEST_RETRY = 30.0
"""Seconds between two tries to replace an instance, at most; one that served for longer has proved itself.

The next death of such an instance counts as its first.
"""


@dataclass(slots=True, eq=False)
class Execution:
    """A batch on its way to an instance and back. `tickets` and `calls` belong to the queue that made it.

    `reason` is why the batch was closed, `traces` are those of its requests that are traced; `following` is executed
    next at the slot. `failures` are the errors of requests that could not have their inputs, by their index, None where
    nothing is copied from or to shared memory.
    """

    slot: int
    tickets: Sequence[int]
    calls: Sequence[Any]
    batch: Batch
    reason: str
    traces: Sequence[Trace]
    following: "Execution | None" = None
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


@dataclass(slots=True, eq=False)
class ManagedInstance:
    """One instance of the configuration, as its worker sees it: a `naiad.extend.WorkerHost`.

    It may die and be replaced; it takes a batch in each of its `slots`. `setbacks` are the deaths and failed
    replacements in a row, `live_since` (`time.monotonic`) is when it was ready. `done` is called with each batch that
    has been executed, `_lost` when its worker has died.
    """

    placement: Placement
    _make: Callable[[Placement], Instance]
    _responses: ResponseBuilder
    _read: ReadAnswer
    done: Callable[[Execution], None]
    _lost: "Callable[[ManagedInstance, Sequence[Execution]], None]"
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    slots: tuple[int, ...] = ()
    worker: Worker[Execution] | None = None
    instance: Instance | None = None
    ready_check: ReadyCheck | None = None
    state: str = "STARTING"
    reason: str = ""
    setbacks: int = 0
    live_since: float = 0.0
    _lends: bool = True

    @property
    def name(self) -> str:
        """The name of its placement, for messages."""
        return self.placement.name

    def goes_live(self, instance: Instance) -> None:
        """The instance serves from now on."""
        self.instance, self.ready_check, self.live_since = instance, ready_check_of(instance), monotonic()
        self.state, self.reason = "READY", ""

    def is_hopeful(self) -> bool:
        """Whether batches may wait for this instance: it takes them, or died only just now and is being replaced."""
        return bool(self.slots) and (self.state == "READY" or self.setbacks == 1)

    def not_ready_because(self, until: float) -> str:
        """Why this instance cannot serve; "" when it can. Waits until then (`time.monotonic`) for its own answer."""
        if self.state != "READY":
            return f"instance '{self.name}' is {self.state}: {self.reason or 'it is being made'}"
        reason = "" if self.ready_check is None else self.ready_check.reason(until)
        return f"instance '{self.name}' is not ready: {reason}" if reason else ""

    @property
    def gpu(self) -> int:
        """The number of its GPU, -1 when it is on none."""
        return self.placement.device if self.placement.kind == "GPU" else -1

    def report(self) -> InstanceReport:
        """The instance as it stands."""
        executing = self.worker.executing if self.worker is not None else ()
        since = min((item.started_ns for item in executing if item.started_ns), default=0)
        busy = (monotonic_ns() - since) / 1e9 if since else 0.0
        return InstanceReport(self.name, self.state, self.reason, busy, self.gpu)

    # For its worker: see `naiad.extend.WorkerHost`

    def make_instance(self) -> Instance:
        """Make the instance; raises NaiadError only."""
        self._lends = True
        try:
            return self._make(self.placement)
        except NaiadError:
            raise
        except BaseException as error:  # SystemExit would end the event loop, a future refuse StopIteration
            _logger.error("making instance '%s' failed", self.name, exc_info=from_user_code(error))
            raise InternalError(describe_failure(error)) from error

    def close_instance(self, instance: Instance) -> None:
        """Close the instance; raises nothing."""
        close_quietly(instance, self.name)

    def report_death(self, error: BaseException) -> str:
        """Log what ended the instance, and describe it."""
        _logger.error("the worker of instance '%s' died", self.name, exc_info=from_user_code(error))
        return describe_failure(error)

    def died(self, reason: str, lost: Sequence[Execution]) -> None:
        """The worker has ended with these batches, and is to be replaced."""
        what = f"the worker of instance '{self.name}' died while it held the request: {reason}; it is being replaced"
        for execution in lost:
            execution.done_ns, execution.error = monotonic_ns(), WorkerDiedError(what)
            execution.started_ns = execution.started_ns or execution.done_ns  # it may have waited for the worker
            if execution.failures is not None:
                self._take_back(execution)
        proved = monotonic() - self.live_since > LONGEST_RETRY
        self.setbacks = 1 if proved else self.setbacks + 1
        self.instance, self.state, self.ready_check = None, "DEAD", None
        self.reason = f"its worker died ({reason})" + (" and is being replaced" if self.live_since else "")
        self._lost(self, lost)

    def execute(self, instance: Instance, execution: Execution, executed: Callable[[Execution], None]) -> None:
        """Execute the batch and make its outcomes; `executed` is called once, perhaps later."""
        execution.started_ns = monotonic_ns()
        try:
            for request in execution.batch.requests:
                if request.transfer is not None:
                    devices = getattr(instance, "input_devices", ())
                    execution.failures = fetch_inputs(execution.batch, devices, self._lends)
                    break
            answer = (
                instance.execute(execution.batch)
                if not execution.traces
                else _execute_traced(instance, execution, self.name)
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
        execution.outcomes, only_read = give_back(execution.batch, execution.outcomes)
        self._lends = self._lends and only_read

    def _fail(self, execution: Execution, error: BaseException, executed: Callable[[Execution], None]) -> None:
        if isinstance(error, NaiadError):
            execution.error = error
        else:
            execution.error = ModelFailedError(f"instance '{self.name}' failed: {describe_failure(error)}")
            execution.error.__cause__ = error
        if isinstance(execution.error, InternalError):
            ids = ", ".join(request.id for request in execution.batch.requests if request.id)
            count, named = len(execution.calls), f" ({ids})" if ids else ""
            requests = "1 request" if count == 1 else f"{count} requests"
            labels = {"model": self._responses.model, "version": str(self._responses.version), "request_id": ids}
            message = f"instance '{self.name}' failed a batch of {requests}{named}"
            _logger.error("%s", message, exc_info=from_user_code(error), extra=labels)
            execution.error.logged = True
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
    except BaseException as error:
        _logger.error("closing instance '%s' failed", name, exc_info=from_user_code(error))
