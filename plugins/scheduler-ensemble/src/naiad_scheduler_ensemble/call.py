"""One request to an ensemble in flight: submits steps as their inputs are ready. Callbacks only, no task."""

import asyncio
import logging
from collections.abc import Sequence
from time import monotonic, monotonic_ns

from naiad.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NaiadError,
)
from naiad.foreign_errors import describe_error, logged, raise_interrupt
from naiad.in_flight import Occupant
from naiad.server import Deliver, Outcome
from naiad.types import Request, Response
from naiad_scheduler_ensemble.bound import BoundEnsemble
from naiad_scheduler_ensemble.moves import EnsembleResponse, Moves
from naiad_scheduler_ensemble.step_call import StepCall, within
from naiad_scheduler_ensemble.step_requests import flags_in, parameters_of, tensors_of

_logger = logging.getLogger("naiad.model")


class EnsembleCall:
    """A request to an ensemble. Every method is for the event loop's thread.

    `over` says that no outcome is awaited any more. `queue_ns` and `phases` are sums over the steps that are over.
    """

    __slots__ = (
        "_arrival",
        "_batch_size",
        "_behind",
        "_deliver",
        "_early",
        "_ensemble",
        "_has_begun",
        "_held",
        "_holders",
        "_is_paused",
        "_is_unblocked",
        "_responses",
        "_run",
        "_running",
        "_timer",
        "over",
        "phases",
        "queue_ns",
        "request",
    )

    def __init__(self, ensemble: BoundEnsemble, request: Request, deliver: Deliver, batch_size: int) -> None:
        self.request = request
        self.over = False
        self.queue_ns = 0
        self.phases = (0, 0, 0)
        self._arrival = monotonic()
        self._batch_size = batch_size
        self._deliver = deliver
        self._ensemble = ensemble
        self._run = ensemble.composition.run(request.inputs, request.requested)
        self._running: set[StepCall] = set()
        self._held: set[StepCall] = set()
        self._holders: dict[int, int] = {}  # how many held steps wait behind each decoupled one
        self._is_paused = self._is_unblocked = False
        self._behind: Sequence[Occupant] = ()
        self._has_begun = False
        self._early: Outcome | None = None  # there before `begin` returns: no step was needed, so it is the only one
        self._responses = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Submit the first steps. Raises what one of them is refused with; nothing is delivered before this returns."""
        self._follow(self._run.begin())
        self._has_begun = True
        if isinstance(self._early, NaiadError):
            failure, self._early = self._early, None
            raise failure
        if self._early is not None:
            self._ensemble.loop.call_soon(self._hand_out_early)

    @property
    def is_waiting(self) -> bool:
        """Whether a step waits because there is no room for it."""
        return bool(self._held)

    def running(self, step: int) -> list[StepCall]:
        """Its runs of that step that are under way."""
        return [each for each in self._running if each.start.step == step]

    def held(self, step: int) -> list[StepCall]:
        """Its runs of that step that wait for room."""
        return [each for each in self._held if each.start.step == step]

    @property
    def waits_for(self) -> Sequence[StepCall]:
        """Its steps."""
        return (*self._held, *self._running)

    @property
    def is_paused(self) -> bool:
        """Whether the caller reads slowly."""
        return self._is_paused

    def cancel(self) -> None:
        """The caller went away: nothing more is delivered. Harmless when the request is over."""
        self._early = None
        if not self.over:
            self.over = True
            self._ensemble.counters.cancelled(self._since_arrival(), bool(self._running))
            self._leave()

    def pause(self, behind: Sequence[Occupant] = ()) -> None:
        """Make the decoupled steps wait for a slow caller; `behind` are the requests that the caller waits for."""
        if not (behind and self._is_unblocked):
            self._is_paused, self._behind = True, behind
            self._throttle_all()

    def resume(self) -> None:
        """The caller has room again."""
        self._is_paused, self._behind = False, ()
        self._throttle_all()

    def unblock(self) -> None:
        """Let the steps go on from now on whatever other requests keep the caller from reading."""
        self._is_unblocked = True
        if self._behind:
            self.resume()

    def fail(self, error: NaiadError, step: StepCall | None = None) -> None:
        """This is the outcome, and that step's where one failed; what still runs is taken back."""
        if self.over:
            return
        self.over = True
        self._ensemble.counters.failed(self._since_arrival())
        self._end_trace()
        self._leave()
        self._hand_out(within(self._ensemble, error, step))

    def admitted(self, step: StepCall) -> None:
        """There is room for a step that was held; another one takes it where the request is over by now."""
        if self.over:
            self._done(step)
            return
        self._held.discard(step)
        self._hold_behind(step, -1)
        self._submit(step)

    # Steps

    def answered(self, step: StepCall, outcome: Outcome) -> None:
        """A step has responded, or failed."""
        if self.over:
            return
        if isinstance(outcome, NaiadError) or outcome.error is not None:
            failure = outcome if isinstance(outcome, NaiadError) else outcome.error
            self._add_times(step)
            self._done(step)
            self.fail(failure or InternalError("a step failed"), step)
            return
        final = outcome.final
        if final:
            self._running.discard(step)
            self._add_times(step)
        flags = flags_in(outcome.parameters) if outcome.parameters else None
        try:
            self._follow(self._run.answered(step.start, outcome.outputs, final, flags, outcome.explicit))
        except BaseException as error:  # no caller must wait for ever because of it
            raise_interrupt(error)
            _logger.exception("an answer within ensemble '%s' could not be handed on", self._ensemble.name)
            self.fail(InternalError(describe_error(error)), step)
        if final:
            self._done(step)

    def _follow(self, moves: Moves) -> None:
        inflight = self._ensemble.inflight
        for start in moves.starts:
            step = StepCall(self, start)
            if inflight is None or inflight.enter(start.step, step):
                self._submit(step)
            else:
                self._hold(step)
            if self.over:
                return
        if moves.failure:
            request_id = f"[request id: {self.request.id}] " if self.request.id else ""
            self.fail(InvalidArgumentError(f"{request_id}{moves.failure}"))
            return
        for response in moves.responses:
            self._respond(response)

    def _hold(self, step: StepCall) -> None:
        self._held.add(step)
        self._hold_behind(step, 1)
        if self.request.deadline is not None and self._timer is None:
            delay = max(0.0, self.request.deadline - monotonic())
            self._timer = self._ensemble.loop.call_later(delay, self._expire)

    def _submit(self, step: StepCall) -> None:
        self._running.add(step)
        try:
            step.submit(self._ensemble, self.request)
        except NaiadError as error:
            self._done(step)
            self.fail(error, step)
            return
        except BaseException as error:  # no caller must wait for ever because of it
            raise_interrupt(error)
            _logger.exception("a step of ensemble '%s' failed", self._ensemble.name)
            self._done(step)
            self.fail(InternalError(describe_error(error)), step)
            return
        if self._is_paused or self._held:
            self._throttle(step)

    def _done(self, step: StepCall) -> None:
        """End the step, and let another one take its room."""
        self._running.discard(step)
        step.end()
        inflight = self._ensemble.inflight
        if inflight is not None:
            waiting = inflight.leave(step.start.step)
            if waiting is not None:
                self._ensemble.admit(waiting)

    def _throttle(self, step: StepCall) -> None:
        """Make a running step wait while its responses have nowhere to go, and go on when they have."""
        if step.call is None:
            return
        number = step.start.step
        if self._holders.get(number):
            steps = self._ensemble.composition.steps
            step.call.pause([each for each in self._held if number in steps[each.start.step].behind])
        elif self._is_paused:
            step.call.pause(self._behind)
        else:
            step.call.resume()

    def _throttle_all(self) -> None:
        for step in list(self._running):
            self._throttle(step)

    def _hold_behind(self, step: StepCall, change: int) -> None:
        """The decoupled steps that it runs behind are too far ahead, or are no longer."""
        for behind in self._ensemble.composition.steps[step.start.step].behind:
            self._holders[behind] = self._holders.get(behind, 0) + change
            for running in self.running(behind):
                self._throttle(running)

    def _leave(self) -> None:
        """Take back what runs, forget what is held, and be forgotten."""
        if self._timer is not None:
            self._timer.cancel()
        inflight = self._ensemble.inflight
        held, self._held = self._held, set()
        if inflight is not None:
            for step in held:
                inflight.forget(step.start.step, step)
        for step in list(self._running):
            self._done(step)
        self._ensemble.ended(self)

    def _expire(self) -> None:
        self._timer = None
        if self._held:
            waited = f"the request still waited for room at a step after {monotonic() - self._arrival:.3f} s"
            self.fail(DeadlineExceededError(f"Deadline Exceeded: {waited}"))

    # Responses

    def _respond(self, composed: EnsembleResponse) -> None:
        ensemble, request = self._ensemble, self.request
        outputs = ensemble.residence.answered(tensors_of(composed.outputs, composed.shapes), request.on_device)
        parameters = parameters_of(request, composed.flags)
        explicit = composed.explicit and ensemble.composition.decoupled and not outputs
        response = Response(
            ensemble.name, ensemble.version, request.id, outputs, parameters, composed.final, explicit=explicit
        )
        if ensemble.composition.decoupled:
            ensemble.counters.response_sent(self._responses, self._since_arrival(), response.is_empty)
        if request.trace is not None:
            request.trace.responded(response)
        if composed.final:
            self.over = True
            ensemble.counters.request_succeeded(
                self._batch_size,
                self._since_arrival(),
                self.queue_ns,
                self.phases,
                streamed=ensemble.composition.decoupled,
            )
            self._end_trace()
            self._leave()
        self._hand_out(response)

    def _hand_out(self, outcome: Outcome) -> None:
        self._responses += 1
        if self._has_begun:
            self._deliver_guarded(outcome)
        else:
            self._early = outcome

    def _hand_out_early(self) -> None:
        """Deliver what was there before `begin` returned, unless the caller has left meanwhile."""
        early, self._early = self._early, None
        if early is not None:
            self._deliver_guarded(early)

    def _deliver_guarded(self, outcome: Outcome) -> None:
        """Deliver it; a receiver that raises must not hold up the requests that wait for the room of this one."""
        with logged(f"delivering a response of ensemble '{self._ensemble.name}'", model=self._ensemble.name):
            self._deliver(outcome)

    def _since_arrival(self) -> int:
        return monotonic_ns() - int(self._arrival * 1e9)

    def _end_trace(self) -> None:
        if self.request.trace is not None:
            self.request.trace.record("REQUEST_END")

    def _add_times(self, step: StepCall) -> None:
        call = step.call
        if call is not None:
            queue_ns, (input_ns, infer_ns, output_ns) = call.queue_ns, call.phases
            inputs, infers, outputs = self.phases
            self.queue_ns += queue_ns
            self.phases = (inputs + input_ns, infers + infer_ns, outputs + output_ns)
