"""One request to an ensemble on its way through the models. There is no task: what a step answers starts the next."""

import logging
from collections import deque
from collections.abc import Hashable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from naiad._kernel.answers import Outcome
from naiad._kernel.call import Call, Deliver
from naiad._kernel.calls.following import lift_pauses_for, wait_for_room
from naiad._kernel.calls.rooms import Hold, Leaf, Room
from naiad._kernel.ensembles.steps import StepCall, flags_in, parameters_of, tensors_of, within
from naiad.ensembles import EnsembleResponse, Moves
from naiad.errors import DeadlineExceededError, InternalError, InvalidArgumentError, NaiadError
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.scheduler import Ticket
from naiad.types import Request, Response

if TYPE_CHECKING:
    from naiad._kernel.ensembles.version import EnsembleVersion


_logger = logging.getLogger("naiad.model")


class EnsembleCall(Call):
    """A request to an ensemble. Every method is for the event loop's thread.

    `queue_ns` and `phases` are sums over the steps that are over, `responses` counts what was delivered.
    """

    __slots__ = ("_early", "_held", "_holders", "_is_lifted", "_is_paused", "_run", "_running", "_version", "responses")

    def __init__(self, version: "EnsembleVersion", request: Request, deliver: Deliver, batch_size: int) -> None:
        super().__init__(_take_back, request, deliver, Ticket(0, monotonic(), batch_size))
        self._version = version
        self._run = version.composition.run(request.inputs, request.requested)
        self._running: set[StepCall] = set()
        self._held: set[StepCall] = set()
        self._holders: dict[int, int] = {}  # how many held steps wait behind each decoupled one
        self._is_paused = self._is_lifted = False
        self._early: list[Outcome] | None = []
        self.responses = 0

    def begin(self) -> None:
        """Submit the first steps. Raises what one of them is refused with; nothing is delivered before this returns."""
        self._follow(self._run.begin())
        early, self._early = self._early, None
        failure = next((outcome for outcome in early or () if isinstance(outcome, NaiadError)), None)
        if failure is not None:
            raise failure
        if not early:
            return
        self.held = deque(outcome for outcome in early if isinstance(outcome, Response))
        self._version.loop.call_soon(self._hand_out_held)

    @property
    def is_waiting(self) -> bool:
        """Whether a step waits because there is no room for it."""
        return bool(self._held)

    def under_way(self, step: int) -> "dict[Hashable, Sequence[Leaf]]":
        """Its runs of that step that are under way, each with all that it waits for."""
        return {each: each.leaves() for each in self._running if each.start.step == step}

    def leaves(self) -> "list[Leaf]":
        """All that it waits for."""
        holds: list[Leaf] = [each.hold for each in self._held if each.hold is not None]
        return holds + [leaf for each in self._running for leaf in each.leaves()]

    def pause(self) -> None:
        """Make the decoupled steps wait: the caller reads slowly."""
        self._is_paused = True
        for step in self._running:
            if step.call is not None:
                step.call.pause()

    def resume(self) -> None:
        """The caller has room again."""
        self._is_paused = False
        for step in list(self._running):
            self._throttle(step)

    def fail(self, error: NaiadError, step: StepCall | None = None) -> None:
        """This is the outcome, and that step's where one failed; what still runs is taken back."""
        if self.over:
            return
        self.over = True
        self._version.counts.failed(self)
        self._leave()
        self._hand_out(within(self._version, error, step))

    def take_back(self) -> None:
        """The caller went away."""
        self._version.counts.cancelled(self, bool(self._running))
        self._leave()

    def admitted(self, step: StepCall) -> None:
        """There is room for a step that was held."""
        self._held.discard(step)
        step.let_in()
        self._hold_behind(step, -1)
        self._submit(step)

    # Steps

    def answered(self, step: StepCall, outcome: Outcome) -> None:
        """A step has responded, or failed."""
        if self.over:
            return
        if isinstance(outcome, NaiadError) or outcome.error is not None:
            failure = outcome if isinstance(outcome, NaiadError) else outcome.error
            self._done(step)
            self.fail(failure or InternalError("a step failed"), step)
            return
        final = outcome.final
        if final:
            self._running.discard(step)
            self._add_times(step)
        flags = flags_in(outcome.parameters) if outcome.parameters else None
        try:
            self._follow(self._run.answered(step.start, outcome.outputs, final, flags))
        except BaseException as error:  # nobody must wait for ever because of it
            raise_interrupt(error)
            _logger.exception("an answer within ensemble '%s' could not be handed on", self._version.name)
            self.fail(InternalError(describe_error(error)), step)
        if final:
            self._done(step)

    def _follow(self, moves: Moves) -> None:
        inflight = self._version.inflight
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
        hold = step.hold = Hold(Room(self._version, step.start.step), self._lift)
        self._held.add(step)
        self._hold_behind(step, 1)
        if self.request.deadline is not None and self.timer is None:
            delay = max(0.0, self.request.deadline - monotonic())
            self.timer = self._version.loop.call_later(delay, self._expire)
        wait_for_room(hold, self.request.caller, lambda error: self.fail(error, step))

    def _submit(self, step: StepCall) -> None:
        self._running.add(step)
        try:
            step.submit(self._version, self.request)
        except NaiadError as error:
            self._done(step)
            self.fail(error, step)
            return
        except BaseException as error:  # nobody must wait for ever because of it
            raise_interrupt(error)
            _logger.exception("a step of ensemble '%s' failed", self._version.name)
            self._done(step)
            self.fail(InternalError(describe_error(error)), step)
            return
        if self._is_paused or self._held:
            self._throttle(step)

    def _done(self, step: StepCall) -> None:
        """Let the step go, and another one in its place."""
        self._running.discard(step)
        step.over()
        inflight = self._version.inflight
        if inflight is not None:
            waiting = inflight.leave(step.start.step)
            if waiting is not None:
                waiting.owner.admitted(waiting)

    def _throttle(self, step: StepCall) -> None:
        """Make a running step wait while its responses have nowhere to go, and go on when they have."""
        if step.call is None:
            return
        number = step.start.step
        is_ahead = bool(self._holders.get(number)) and not self._is_lifted
        if is_ahead:
            steps = self._version.composition.steps
            held = [each for each in self._held if number in steps[each.start.step].behind]
            step.call.behind = [each.hold for each in held if each.hold is not None]
        elif step.call.behind:
            step.call.behind = ()
        if self._is_paused or is_ahead:
            step.call.pause()
        else:
            step.call.resume()

    def _hold_behind(self, step: StepCall, change: int) -> None:
        """The decoupled steps that it runs behind are too far ahead, or are no longer."""
        for behind in self._version.composition.steps[step.start.step].behind:
            held = self._holders[behind] = self._holders.get(behind, 0) + change
            for running in list(self._running):
                if running.start.step == behind:
                    self._throttle(running)
            if step.hold is not None and held == 1 and not self._is_lifted:
                lift_pauses_for(step.hold.room)

    def _lift(self) -> None:
        """Let the decoupled steps go on however far ahead they are: what would make room waits for them."""
        self._is_lifted = True
        for step in list(self._running):
            self._throttle(step)

    def _leave(self) -> None:
        """Take back what runs, forget what is held, and be forgotten."""
        if self.timer is not None:
            self.timer.cancel()
        inflight = self._version.inflight
        held, self._held = self._held, set()
        if inflight is not None:
            for step in held:
                step.let_in()
                inflight.forget(step.start.step, step)
        for step in list(self._running):
            self._done(step)
        self._version.left(self)

    def _expire(self) -> None:
        if self._held:
            waited = f"the request still waited for room at a step after {monotonic() - self.arrival:.3f} s"
            self.fail(DeadlineExceededError(f"Deadline Exceeded: {waited}"))

    # Responses

    def _respond(self, made: EnsembleResponse) -> None:
        version = self._version
        outputs = version.residence.answered(tensors_of(made.outputs, made.shapes), self.request.on_device)
        parameters = parameters_of(self.request, made.flags)
        response = Response(version.name, version.version, self.request.id, outputs, parameters, made.final)
        version.counts.responded(self, response)
        if made.final:
            self.over = True
            version.counts.succeeded(self)
            self._leave()
        self._hand_out(response)

    def _hand_out_held(self) -> None:
        """Deliver what was there before `begin` returned, unless the caller has left meanwhile."""
        while self.held:
            self.deliver(self.held.popleft())
        self.held = None

    def _hand_out(self, outcome: Outcome) -> None:
        self.responses += 1
        if self._early is not None:
            self._early.append(outcome)
        elif self.held is not None and isinstance(outcome, Response):
            self.held.append(outcome)
        else:
            self.deliver(outcome)

    def _add_times(self, step: StepCall) -> None:
        call = step.call
        if call is not None:
            queue_ns, (input_ns, infer_ns, output_ns) = call.queue_ns, call.phases
            inputs, infers, outputs = self.phases
            self.queue_ns += queue_ns
            self.phases = (inputs + input_ns, infers + infer_ns, outputs + output_ns)


def _take_back(call: Call) -> None:
    if isinstance(call, EnsembleCall):
        call.take_back()
