"""Random histories of a model queue, with streams: every call has one end, in order, and no sender waits for ever."""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from naiad._engine.call import Call
from naiad._engine.streams import StreamSender
from naiad.errors import DeadlineExceededError, InternalError, QueueFullError, ShuttingDownError, WorkerDiedError
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason, Ticket
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_testing.loops import JumpingLoop, jump, turns

from .driven_streams import DrivenStreams, number, value_of
from .schedulers import Recording

CALLERS = ["listens", "leaves", "takes the next one back", "raises"]
POSTS: dict[str, tuple[Any, bool]] = {
    "a number": (number(1), False),
    "an error": (InternalError("one of several"), False),
    "the last number": (number(2), True),
    "the end": (None, True),
    "the last error": (InternalError("the last"), True),
}


class Batching(Recording):
    """Takes up to three at once, refuses the tenth that waits, and fails on request."""

    preserves_ordering = False
    fails = False

    def arrive(self, ticket: Ticket) -> Drop | None:
        if len(self._waiting) >= 10:
            return Drop((ticket.id,), DropReason.QUEUE_FULL)
        return super().arrive(ticket)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if self.fails:
            raise ArithmeticError("asked to fail")
        if not idle or not self._waiting:
            return NOTHING
        taken = tuple(self._oldest() for _ in range(min(3, len(self._waiting))))
        return Decision((Dispatch(idle[0], taken, "batch"),))


class Ordering(Batching):
    preserves_ordering = True


class Histories(RuleBasedStateMachine):
    """Everything that can happen to requests that are streamed, in any order."""

    scheduler: type[Batching] = Batching

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=JumpingLoop)
        self.schedulers: list[Batching] = []
        self.log: list[tuple[int, Any]] = []
        self.calls: list[Call | None] = []
        self.posted: dict[int, list[Any]] = defaultdict(list)
        self.counts_at_cancel: dict[int, int] = {}
        self.senders: dict[int, StreamSender] = {}
        self.rooms: list[tuple[int, Future[None]]] = []
        self.lost_slots: list[int] = []
        self.driven: DrivenStreams = self.run(lambda: DrivenStreams(self._make_scheduler, slots=2))

    def _make_scheduler(self) -> Batching:
        self.schedulers.append(self.scheduler())
        return self.schedulers[-1]

    def run(self, act: Callable[[], Any]) -> Any:
        """Do something on the event loop."""

        async def on_the_loop() -> Any:
            return act()

        return self.runner.run(on_the_loop())

    # Callers

    @rule(
        seconds=st.sampled_from([None, 1.0, 10.0]),
        size=st.integers(1, 4),
        callers=st.lists(st.sampled_from(CALLERS), min_size=1, max_size=4),
    )
    def submit(self, seconds: float | None, size: int, callers: list[str]) -> None:
        self.run(lambda: [self._submit(seconds, size, caller) for caller in callers])

    def _submit(self, seconds: float | None, size: int, caller: str) -> None:
        index = len(self.calls)
        self.calls.append(None)

        def deliver(outcome: Outcome) -> None:
            self.log.append((index, value_of(outcome)))
            if caller == "leaves":
                self._leave(index)
            elif caller == "takes the next one back" and index + 1 in self._accepted():
                self._leave(index + 1)
            elif caller == "raises":
                raise ValueError("asked to raise")

        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        request = Request("m", {}, id=str(index), deadline=deadline)
        with suppress(QueueFullError, DeadlineExceededError):  # a busy machine may take a second to get here
            self.calls[index] = self.driven.queue.submit(request, size, None, deliver)

    @precondition(lambda self: self._accepted())
    @rule(chance=st.randoms())
    def take_back(self, chance: random.Random) -> None:
        self.run(lambda: self._leave(chance.choice(self._accepted())))

    @precondition(lambda self: self._accepted())
    @rule(chance=st.randoms(), pauses=st.booleans())
    def read_slower_or_faster(self, chance: random.Random, pauses: bool) -> None:
        call = self.calls[chance.choice(self._accepted())]
        assert call is not None
        self.run(call.pause if pauses else call.resume)

    def _accepted(self) -> list[int]:
        return [index for index, call in enumerate(self.calls) if call is not None]

    def _leave(self, index: int) -> None:
        call = self.calls[index]
        assert call is not None
        self.counts_at_cancel.setdefault(index, len(self._received(index)))
        call.cancel()

    def _received(self, index: int) -> list[Any]:
        return [each for whose, each in self.log if whose == index]

    # The model

    @precondition(lambda self: self.driven.sent)
    @rule(chance=st.randoms(), notes=st.sampled_from(["", "ends", "raises"]))
    def take_a_sender(self, chance: random.Random, notes: str) -> None:
        index = int(
            chance.choice([request.id for execution in self.driven.sent for request in execution.batch.requests])
        )
        self.senders[index] = self.driven.sender(str(index))
        call = self.calls[index]
        assert call is not None
        if notes and not call.request.cancelled:
            call.request.on_cancelled = lambda: self._take_note(index, notes)

    def _take_note(self, index: int, notes: str) -> None:
        if notes == "raises":
            raise ValueError("asked to raise")
        with suppress(KeyError, InternalError):
            self.senders[index].post(*POSTS["the end"])

    @precondition(lambda self: self.senders)
    @rule(chance=st.randoms(), post=st.sampled_from(["a number"] * 3 + list(POSTS)), times=st.sampled_from([1, 1, 100]))
    def post(self, chance: random.Random, post: str, times: int) -> None:
        index = chance.choice(sorted(self.senders))
        reply, final = POSTS[post]
        for _ in range(1 if final else times):
            with suppress(InternalError):  # all was sent
                room = self.run(lambda: self.senders[index].post(reply, final))
                self.posted[index].append(value_of(_response(reply)) if not final else None)
                if room is not None:
                    self.rooms.append((index, room))

    @precondition(lambda self: self.senders)
    @rule(chance=st.randoms())
    def drop_a_sender(self, chance: random.Random) -> None:
        index = chance.choice(sorted(self.senders))
        self.run(lambda: self.senders.pop(index))

    @precondition(lambda self: self.driven.sent)
    @rule(last=st.booleans(), answers=st.lists(st.sampled_from(["", "", "", "answer", "fail"]), min_size=3, max_size=3))
    def come_back(self, last: bool, answers: list[str]) -> None:
        index = len(self.driven.sent) - 1 if last else 0
        requests = self.driven.sent[index].batch.requests
        fields = {"": None, "answer": Response("m", 1, "", {}), "fail": InternalError("failed")}
        self.run(lambda: self.driven.stream_on(index, [fields[each] for each in answers[: len(requests)]]))

    @precondition(lambda self: self.driven.sent)
    @rule(dies=st.booleans())
    def break_off(self, dies: bool) -> None:
        if dies:
            self.lost_slots.append(self.driven.sent[0].slot)
            self.run(lambda: self.driven.die(WorkerDiedError("died")))
        else:
            self.run(lambda: self.driven.fail(InternalError("failed")))

    # The server

    @rule(seconds=st.sampled_from([0.0, 0.0, 0.5, 2.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.runner.run(jump(seconds))
        for index, room in self.rooms:
            call = self.calls[index]
            assert room.done() or (call is not None and call.is_held_up)

    @precondition(lambda self: self.lost_slots)
    @rule()
    def replace_a_worker(self) -> None:
        self.run(lambda: self.driven.queue.free(self.lost_slots.pop()))

    @rule()
    def the_scheduler_fails(self) -> None:
        self.schedulers[-1].fails = True

    @rule(executing=st.booleans())
    def fail_all(self, executing: bool) -> None:
        self.run(lambda: self.driven.queue.fail_all(ShuttingDownError("stop"), executing))

    # What holds at every moment

    @invariant()
    def each_receives_what_was_sent_and_one_end(self) -> None:
        for index in range(len(self.calls)):
            mine = self._received(index)
            ends = [position for position, each in enumerate(mine) if isinstance(each, tuple)]
            assert ends in ([], [len(mine) - 1])
            responses = mine[:-1] if ends else mine
            assert responses == self.posted[index][: len(responses)]

    @invariant()
    def a_cancelled_caller_receives_no_more(self) -> None:
        for index, count in self.counts_at_cancel.items():
            assert len(self._received(index)) == count

    @invariant()
    def no_slot_has_two_batches(self) -> None:
        slots = [execution.slot for execution in self.driven.sent]
        assert len(slots) == len(set(slots))

    @invariant()
    def an_order_is_kept(self) -> None:
        order = [index for index, _ in self.log]
        assert order == sorted(order) or not self.scheduler.preserves_ordering

    @invariant()
    def no_ticket_is_settled_twice(self) -> None:
        for scheduler in self.schedulers:
            assert len(scheduler.settled) == len(set(scheduler.settled))

    @invariant()
    def what_waits_is_part_of_what_is_there(self) -> None:
        assert 0 <= self.driven.queue.waiting <= self.driven.queue.outstanding

    def teardown(self) -> None:
        try:
            self.runner.run(self._end())
        finally:
            self.runner.close()

    async def _end(self) -> None:
        for slot in self.lost_slots:
            self.driven.queue.free(slot)
        for index in self._accepted():
            self.calls[index].resume()  # type: ignore[union-attr]
        drained = asyncio.ensure_future(self.driven.queue.drained())
        await turns()
        while self.driven.sent:
            self.driven.finish()
            await turns()
        self.senders.clear()
        await turns()
        assert drained.done()
        assert all(room.done() for _, room in self.rooms)
        assert self.driven.queue.outstanding == 0
        unended = {index for index in self._accepted() if not isinstance((self._received(index) or [None])[-1], tuple)}
        assert unended <= set(self.counts_at_cancel)
        statistics = self.driven.statistics
        assert statistics.success.count + statistics.fail.count == len(self.calls)
        if len(self.schedulers) == 1:
            assert sorted(self.schedulers[0].settled) == sorted(ticket.id for ticket in self.schedulers[0].tickets)


def _response(reply: Any) -> Any:
    error = reply if isinstance(reply, InternalError) else None
    parameters = {} if error else reply.parameters
    return Response("m", 1, "", {}, parameters, final=False, error=error)


class OrderedHistories(Histories):
    scheduler = Ordering


@pytest.mark.parametrize("histories", [Histories, OrderedHistories])
def test_every_call_has_one_end_and_no_sender_waits_for_ever(
    histories: type[Histories], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "naiad.model")  # what is logged would keep senders alive, by its traceback
    run_state_machine_as_test(histories, settings=settings(max_examples=40, stateful_step_count=40))
