"""Delivery of outcomes to their callers, in order where the scheduler asks for it; counts them."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic_ns

from naiad._engine.call import Call
from naiad._engine.execution import Execution
from naiad._engine.streams import ResponseStream, Sent
from naiad.errors import InternalError, ModelFailedError, NaiadError, drop_tracebacks
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.server import Outcome
from naiad_config.errors import errors_of
from naiad_statistics.versions import FailureReason, ResponseKind, VersionCounters

_logger = logging.getLogger("naiad.model")


@dataclass(slots=True, eq=False)
class Delivery:
    """Delivers the outcomes of one queue. An ordered outcome waits until all earlier calls are over.

    Requests of models are never ordered: an earlier call may wait for their answer, which would be a deadlock.
    Meanwhile a model that streams waits too, where `_holds_models`. It must not where an earlier call may need its
    instance: with a batch codec, which may execute a batch in several steps, and once a model has called this one.
    """

    _model: str
    _counters: VersionCounters
    _holds_models: bool
    _order: deque[Call] = field(default_factory=deque)
    _releasing: bool = False

    def expect(self, call: Call) -> None:
        """Deliver in the order in which calls come here for the first time; not needed where there is none."""
        if call.request.caller is not None:
            if self._holds_models:  # and from now on no more
                self._holds_models = False
                for each in self._order:
                    each.free_model()
        elif not call.ordered:
            call.ordered = True
            self._order.append(call)

    def answer(self, execution: Execution) -> None:
        """Conclude every call of a batch that came back, but for those that stream, and count them together.

        If that raises, which would be a fault of the server, the calls without an outcome fail, so that none hangs.
        """
        try:
            outcomes: Sequence[Outcome | None] = execution.outcomes
            if execution.error is not None:
                outcomes = errors_of(execution.error, len(execution.calls))
            if execution.traces:
                _record_outcomes(execution, outcomes)
            phases, joined = execution.phases(), (execution.batch.size, execution.reason)
            totals: list[int] = []
            queues: list[int] = []
            items = failed = failed_ns = 0
            for call, outcome in zip(execution.calls, outcomes, strict=True):
                if call.over or (outcome is None and call.stream is not None):
                    continue
                if outcome is None or (call.stream is not None and execution.error is None):
                    outcome = self._invalid_answer(call)
                arrival_ns = int(call.arrival * 1e9)
                call.queue_ns, call.phases, call.joined = execution.started_ns - arrival_ns, phases, joined
                if isinstance(outcome, NaiadError):
                    drop_tracebacks(outcome)
                    failed, failed_ns = failed + 1, failed_ns + execution.done_ns - arrival_ns
                else:
                    items += call.ticket.batch_size
                    totals.append(execution.done_ns - arrival_ns)
                    queues.append(call.queue_ns)
                self.conclude(call, outcome)
            counters = self._counters.by_slot[execution.slot]
            if execution.error is None:
                counters.executed(execution.batch.size, phases)
            if totals:
                counters.succeeded(items, totals, queues, phases)
            if failed:
                self._counters.failed(failed_ns, failed, FailureReason.BACKEND)
        except BaseException as error:  # noqa: BLE001 - none of the calls may hang for it
            self._fail_unanswered(execution, error)

    def _fail_unanswered(self, execution: Execution, error: BaseException) -> None:
        raise_interrupt(error)
        _logger.error("answering a batch of model '%s' failed", self._model, exc_info=error)
        failure = InternalError(
            f"model '{self._model}' executed the request, and its answer was lost: {describe_error(error)}"
        )
        for call, each in zip(execution.calls, errors_of(failure, len(execution.calls)), strict=True):
            if not call.over and (call.stream is None or call.stream.ended):
                self._counters.failed(0)
                self.conclude(call, each)

    def pass_on(self, stream: ResponseStream, sent: Sequence[Sent]) -> None:
        """Deliver what a model has sent; its last response, or an error, concludes the call."""
        call = stream.call
        for outcome, infer_ns, output_ns in sent:
            if stream.ended:  # several threads sent at once, and another one said that all was sent
                break
            stream.ended = isinstance(outcome, NaiadError) or outcome.final
            self._counters.responded(stream.count, infer_ns, output_ns, _kind(outcome, call))
            stream.count += 1
            if call.over:
                continue
            if call.request.trace is not None:
                call.request.trace.responded(outcome)
            if isinstance(outcome, NaiadError):
                drop_tracebacks(outcome)
            elif stream.count == 1 and not outcome.is_empty:
                waited_ns = monotonic_ns() - int(call.arrival * 1e9)
                self._counters.by_slot[stream.slot].first_responses((waited_ns,))
            if isinstance(outcome, NaiadError) or outcome.final:
                self._count(stream, outcome)
                self.conclude(call, outcome)
            elif call.ordered and self._order[0] is not call:
                call.hold(outcome, self._holds_models)
            else:
                self._deliver(call, outcome)
        if stream.ended:
            call.stream = None  # they know each other: the tensors of both would wait for the garbage collector

    def conclude(self, call: Call, outcome: Outcome) -> None:
        """This is the outcome of the call, which is over now."""
        call.over = True
        if call.request.trace is not None:
            call.request.trace.record("REQUEST_END")
        if call.timer is not None:
            call.timer.cancel()
        if call.stream is not None and not call.stream.ended:
            call.notify_model()
        if call.ordered:
            call.outcome = outcome
            self.release()
            return
        self._deliver(call, outcome)

    def deliver_outcome(self, call: Call) -> None:
        """Deliver the outcome that was kept in the call, unless its caller has gone."""
        outcome, call.outcome = call.outcome, None
        if outcome is not None:
            self._deliver(call, outcome)

    def release(self) -> None:
        """Deliver what no earlier call holds back any more; calls that were taken back are passed over."""
        if self._releasing:  # who gets a response may take a call back, and what follows must not overtake it
            return
        self._releasing = True
        try:
            while self._order:
                call = self._order[0]
                if call.held is not None:
                    self._deliver_held(call)
                if not call.over:
                    break
                self._order.popleft()
                self.deliver_outcome(call)
        finally:
            self._releasing = False

    def _deliver_held(self, call: Call) -> None:
        while call.held:  # until there are no more, or the caller has left
            self._deliver(call, call.held.popleft())
        call.held = None
        if call.stream is not None and not call.is_held_up:
            call.stream.release()

    def _count(self, stream: ResponseStream, outcome: Outcome) -> None:
        call, now = stream.call, monotonic_ns()
        total_ns, phases = now - int(call.arrival * 1e9), (0, now - stream.opened_ns, 0)
        call.queue_ns, call.phases = total_ns - phases[1], phases
        if call.request.trace is not None:
            call.request.trace.executed(stream.opened_ns, phases)
        if isinstance(outcome, NaiadError):
            self._counters.failed(total_ns, reason=FailureReason.BACKEND)
            return
        counters = self._counters.by_slot[stream.slot]
        counters.succeeded(call.ticket.batch_size, (total_ns,), (call.queue_ns,), phases, streamed=True)

    def _invalid_answer(self, call: Call) -> NaiadError:
        if call.stream is not None:
            return ModelFailedError(
                f"model '{self._model}' answered a request twice, through its response sender and in what execute "
                "returned; return None for it"
            )
        return ModelFailedError(
            f"model '{self._model}' answered a request with None without having taken its response sender; return a "
            "reply, or take the sender first"
        )

    def _deliver(self, call: Call, outcome: Outcome) -> None:
        try:
            call.deliver(outcome)
        except BaseException as error:
            raise_interrupt(error)
            _logger.error("delivering a response of model '%s' failed", self._model, exc_info=error)


def _record_outcomes(execution: Execution, outcomes: Sequence[Outcome | None]) -> None:
    """Record the outcomes of a batch in the traces of its requests; None stands for a request that streams."""
    for call, outcome in zip(execution.calls, outcomes, strict=True):
        trace = call.request.trace
        if trace is not None and outcome is not None and not call.over:
            trace.executed(execution.started_ns, execution.phases())
            trace.responded(outcome)


def _kind(outcome: Outcome, call: Call) -> ResponseKind:
    if call.over:
        return ResponseKind.CANCEL
    if isinstance(outcome, NaiadError) or outcome.error is not None:
        return ResponseKind.FAIL
    return ResponseKind.EMPTY_RESPONSE if outcome.final and outcome.is_empty else ResponseKind.SUCCESS
