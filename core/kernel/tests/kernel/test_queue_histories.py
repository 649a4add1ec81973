"""Random histories of a model queue: whatever happens, each call is answered once unless it was taken back."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from naiad._engine.call import Call
from naiad.default_scheduler import FifoScheduler
from naiad.errors import InternalError, QueueFullError, ShuttingDownError, WorkerDiedError
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason, Ticket
from naiad_testing.loops import JumpingLoop, jump, turns

from .driven import DrivenQueue


class Batching(FifoScheduler):
    """Takes up to three at once, refuses the tenth that waits, keeps the order, and fails on request."""

    preserves_ordering = True
    fails = False

    def arrive(self, ticket: Ticket) -> Drop | None:
        if len(self._waiting) >= 10:
            return Drop((ticket.id,), DropReason.QUEUE_FULL)
        return super().arrive(ticket)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if Batching.fails:
            Batching.fails = False
            raise ArithmeticError("asked to fail")
        if not idle or not self._waiting:
            return NOTHING
        taken = tuple(self._oldest() for _ in range(min(3, len(self._waiting))))
        return Decision((Dispatch(idle[0], taken, "batch"),))


class Histories(RuleBasedStateMachine):
    """Everything that can happen to a queue, in any order."""

    def __init__(self) -> None:
        super().__init__()
        Batching.fails = False
        self.runner = asyncio.Runner(loop_factory=JumpingLoop)
        self.driven = self.runner.run(self._make())
        self.submitted = 0
        self.calls: dict[str, Call] = {}
        self.taken_back: set[str] = set()
        self.answered_before_leaving: set[str] = set()
        self.lost_slots: list[int] = []

    async def _make(self) -> DrivenQueue:
        return DrivenQueue(Batching, slots=2)

    @rule(seconds=st.sampled_from([None, 1.0, 10.0]), batch_size=st.integers(1, 4))
    def submit(self, seconds: float | None, batch_size: int) -> None:
        async def run() -> None:
            self.submitted += 1
            name = f"request {self.submitted}"
            with suppress(QueueFullError):
                self.calls[name] = self.driven.submit(name, batch_size, seconds)

        self.runner.run(run())

    @precondition(lambda self: self.calls)
    @rule(chance=st.randoms(use_true_random=False))
    def take_back(self, chance: random.Random) -> None:
        async def run() -> None:
            name = chance.choice(sorted(self.calls))
            if self.driven.outcomes[name]:
                self.answered_before_leaving.add(name)
            self.taken_back.add(name)
            self.calls[name].cancel()

        self.runner.run(run())

    @rule(seconds=st.sampled_from([0.5, 2.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.runner.run(jump(seconds))

    @rule()
    def let_things_happen(self) -> None:
        self.runner.run(turns())

    @precondition(lambda self: self.driven.sent)
    @rule(last=st.booleans(), how=st.sampled_from(["answer", "fail", "die"]))
    def finish(self, last: bool, how: str) -> None:
        async def run() -> None:
            index = len(self.driven.sent) - 1 if last else 0
            if how == "answer":
                self.driven.finish(index)
            elif how == "fail":
                self.driven.fail(InternalError("failed"), index)
            else:
                self.lost_slots.append(self.driven.sent[index].slot)
                self.driven.die(WorkerDiedError("died"), index)

        self.runner.run(run())

    @precondition(lambda self: self.lost_slots)
    @rule()
    def replace_a_worker(self) -> None:
        async def run() -> None:
            self.driven.queue.free(self.lost_slots.pop())

        self.runner.run(run())

    @rule()
    def the_scheduler_fails(self) -> None:
        Batching.fails = True

    @rule()
    def fail_what_waits(self) -> None:
        async def run() -> None:
            self.driven.queue.fail_all(ShuttingDownError("stop"))

        self.runner.run(run())

    @invariant()
    def nothing_is_delivered_twice_or_to_who_left(self) -> None:
        for name in self.calls:
            outcomes = self.driven.outcomes[name]
            assert len(outcomes) <= 1
            assert not outcomes or name not in self.taken_back or name in self.answered_before_leaving

    @invariant()
    def no_slot_has_two_batches(self) -> None:
        slots = [execution.slot for execution in self.driven.sent]
        assert len(slots) == len(set(slots))

    def teardown(self) -> None:
        try:
            self.runner.run(self._end())
        finally:
            self.runner.close()

    async def _end(self) -> None:
        for slot in self.lost_slots:
            self.driven.queue.free(slot)
        drained = asyncio.ensure_future(self.driven.queue.drained())
        await turns()
        while self.driven.sent:
            self.driven.finish()
            await turns()
        await drained
        unanswered = {name for name in self.calls if not self.driven.outcomes[name]}
        assert unanswered <= self.taken_back
        statistics = self.driven.statistics
        assert statistics.success.count + statistics.fail.count == self.submitted
        assert len(self.driven.answered()) <= statistics.success.count


def test_every_call_is_answered_once_unless_it_was_taken_back() -> None:
    run_state_machine_as_test(Histories, settings=settings(max_examples=60, stateful_step_count=25, deadline=None))
