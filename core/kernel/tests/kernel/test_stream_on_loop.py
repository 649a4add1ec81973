"""Senders of models that execute on the event loop's own thread, which sends exactly one response a request."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import naiad_loop_handoff
from naiad.backend import Answer, Batch, Sender
from naiad.errors import InternalError
from naiad.scheduler import Decision, Drop, DropReason
from naiad_testing.in_loop import FLOATS, request, rows, running, write_model
from naiad_testing.loops import jump, turns, until
from naiad_testing.scheduling import Scheduling
from naiad_testing.steered import Steered, SteeredInstance

from .schedulers import Recording, Strict
from .streaming import Caller, answers_of, batched, reply, sending, serving, values_of

ON_LOOP = FLOATS + 'parameters { key: "execute_on" value { string_value: "event_loop" } }\n'
BATCHED = ON_LOOP + "max_batch_size: 4 dynamic_batching {}\n"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([(reply(1), True)], [([1.0],)]),
        ([(reply(1), False), (None, True)], [([1.0],)]),
        ([(InternalError("broke"), True)], [("InternalError: broke",)]),
        ([(InternalError("broke"), False), (None, True)], [("InternalError: broke",)]),
    ],
)
async def test_it_may_send_its_one_response(
    tmp_path: Path, sent: Sequence[tuple[Any, bool]], expected: list[Any]
) -> None:
    async with serving(tmp_path, sending(*sent), ON_LOOP, plugins=[naiad_loop_handoff]) as server:
        first, second = await answers_of(server), await answers_of(server)
        (counted,) = server.statistics("m")

    assert (first, second) == (expected, expected)
    assert counted.success.count + counted.fail.count == counted.execution_count == 2


@pytest.mark.parametrize("config", [FLOATS, ON_LOOP], ids=["thread", "event loop"])
async def test_a_response_that_was_sent_comes_before_the_error_that_follows(tmp_path: Path, config: str) -> None:
    def execute(batch: Batch) -> Answer:
        batch.sender(0).send(reply(1), final=True)
        raise ValueError("too late")

    async with serving(tmp_path, execute, config, plugins=[naiad_loop_handoff]) as server:
        answers = [await answers_of(server) for _ in range(100)]

    assert answers == [[([1.0],)]] * 100


async def test_it_may_send_later_from_the_loop_or_from_another_thread(tmp_path: Path) -> None:
    senders: list[Sender] = []

    def execute(batch: Batch) -> Answer:
        senders.append(batch.sender(0))
        return [None]

    async with serving(tmp_path, execute, ON_LOOP, plugins=[naiad_loop_handoff]) as server:
        first, second = Caller(), Caller()
        server.submit(request("m", 1.0), first)
        server.submit(request("m", 1.0), second)
        await until(lambda: len(senders) == 2)
        waited = senders[0].send(reply(1), True), await asyncio.to_thread(senders[1].send, reply(2), True)
        senders.clear()
        await first.done.wait()
        await second.done.wait()

    assert waited == (True, True)
    assert values_of(first.outcomes) + values_of(second.outcomes) == [([1.0],), ([2.0],)]


async def test_one_that_ends_its_worker_after_it_has_sent_ends_its_request_once(tmp_path: Path) -> None:
    def execute(batch: Batch) -> Answer:
        batch.sender(0).send(reply(1), final=True)
        raise SystemExit("after all was sent")

    async with serving(tmp_path, execute, ON_LOOP, plugins=[naiad_loop_handoff]) as server:
        outcomes = await answers_of(server)
        await turns()
        (counted,) = server.statistics("m")

    assert len(outcomes) == 1
    assert counted.success.count + counted.fail.count == 1


class Watching(Recording):
    """`nested` says whether one of its methods was called while it decided."""

    decides = nested = False

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.nested |= self.decides
        self.decides = True
        decision = super().decide(now, idle)
        self.decides = False
        return decision

    def settle(self, tickets: Sequence[int], now: float) -> None:
        self.nested |= self.decides
        super().settle(tickets, now)


async def test_one_that_answers_when_it_hears_that_its_caller_left_harms_nothing_else(tmp_path: Path) -> None:
    """Such an answer comes back in the middle of what the queue is doing to the call."""
    pending: list[Future[Answer]] = []

    def execute(batch: Batch) -> "Future[Answer]":
        future: Future[Answer] = Future()
        pending.append(future)
        batch.requests[0].on_cancelled = lambda: future.set_result([batched(1)])
        return future

    instances: list[Watching] = []
    backend = Steered(execute=execute, instantiate=lambda placement: SteeredInstance(backend, concurrency=2))
    write_model(tmp_path, "m", BATCHED)
    scheduling = Scheduling(lambda: instances.append(Watching()) or instances[-1])  # type: ignore[arg-type,func-returns-value]
    async with running(tmp_path, backend, scheduling, naiad_loop_handoff) as server:
        callers = [Caller() for _ in range(4)]
        now = asyncio.get_running_loop().time()
        for caller in callers[:2]:
            server.submit(rows("m", 1.0, deadline=now + 5), caller)
        for caller in callers[2:]:
            server.submit(rows("m", 1.0), caller)
        await until(lambda: len(pending) == 2)
        await jump(6)
        await until(lambda: len(pending) == 4)
        for future in pending[2:]:
            future.set_result([batched(2)])
        await asyncio.gather(*(caller.done.wait() for caller in callers))
        (counted,) = server.statistics("m")

    kinds = [type(caller.outcomes[0]).__name__ for caller in callers]
    assert kinds == ["DeadlineExceededError", "DeadlineExceededError", "Response", "Response"]
    assert [len(caller.outcomes) for caller in callers] == [1] * 4
    assert (counted.success.count, counted.fail.count) == (2, 2)
    assert sorted(instances[0].settled) == [1, 2, 3, 4]
    assert not instances[0].nested


async def test_an_answer_that_comes_while_a_decision_is_carried_out_waits_for_its_end(tmp_path: Path) -> None:
    pending: list[Future[Answer]] = []

    def execute(batch: Batch) -> "Future[Answer]":
        future: Future[Answer] = Future()
        pending.append(future)
        batch.requests[0].on_cancelled = lambda: future.set_result([batched(1)])
        return future

    instances: list[Strict] = []
    backend = Steered(execute=execute, instantiate=lambda placement: SteeredInstance(backend))
    write_model(tmp_path, "m", BATCHED)
    scheduling = Scheduling(lambda: instances.append(Strict()) or instances[-1])  # type: ignore[arg-type,func-returns-value]
    async with running(tmp_path, backend, scheduling, naiad_loop_handoff) as server:
        executing = server.submit(rows("m", 1.0), Caller())
        await until(lambda: pending)
        decisions: list[int] = []

        def dropped(outcome: object) -> None:
            decisions.append(instances[0].decisions)
            executing.cancel()
            decisions.append(instances[0].decisions)

        server.submit(rows("m", 1.0), dropped)
        instances[0].drops = (Drop((2,), DropReason.TIMEOUT),)
        last = Caller()
        server.submit(rows("m", 1.0), last)
        await until(lambda: len(pending) == 2)
        pending[1].set_result([batched(2)])
        await last.done.wait()

    before, after = decisions
    assert before == after
