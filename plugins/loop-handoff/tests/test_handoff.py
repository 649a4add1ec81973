"""Threads of models that run the event loop in turns: real threads, a real server, and no clock."""

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
import uvloop

import naiad_loop_handoff
from naiad import Server
from naiad.backend import Answer, Batch
from naiad.errors import ModelFailedError, WorkerDiedError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, rows
from naiad_testing.leading import lead, led_by
from naiad_testing.loops import until
from naiad_testing.scheduling import AllAtOnce, Scheduling

LONG = 30.0
"""Seconds after which a test that waits for a thread has failed."""

DEADLY = 666.0
WAITING = 7.0
"""The value that asks a model to wait."""


def echo(batch: Batch) -> Answer:
    return {"OUTPUT": batch.input("INPUT")}


async def answer_of(server: Server, *values: float, model: str = "m") -> list[float]:
    response = await server.infer(request(model, *values))
    outputs: list[float] = response.outputs["OUTPUT"].array.tolist()
    return outputs


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_quick_model_s_thread_runs_the_event_loop(tmp_path: Path, loop_factory: object) -> None:
    executing: set[int] = set()
    running: set[object] = set()

    def watched(batch: Batch) -> Answer:
        executing.add(threading.get_ident())
        running.add(asyncio._get_running_loop())
        return echo(batch)

    async def body(server: Server) -> None:
        leader = await led_by(server, "m")
        for value in range(100):
            assert await answer_of(server, value) == [value]
        assert threading.get_ident() == leader
        assert executing == {leader}  # it lives on one thread from its first batch on
        assert running == {None}  # and sees no loop run there

    backend = FakeBackend(answer=watched)
    backend.write(tmp_path, "m", "")
    lead(tmp_path, body, naiad_loop_handoff, backend, loop_factory=loop_factory)

    assert [event for event in backend.events if event.startswith("close")] == ["close m_0", "close m 1"]


def test_of_two_instances_one_leads_while_requests_come_one_by_one(tmp_path: Path) -> None:
    executing: list[int] = []

    def watched(batch: Batch) -> Answer:
        executing.append(threading.get_ident())
        return echo(batch)

    async def body(server: Server) -> None:
        leader = await led_by(server, "m")
        for value in range(100):
            assert await answer_of(server, value) == [value]
        assert executing[-100:] == [leader] * 100

    backend = FakeBackend(answer=watched)
    backend.write(tmp_path, "m", "instance_group { kind: KIND_CPU count: 2 }")
    lead(tmp_path, body, naiad_loop_handoff, backend)


def test_a_leader_stays_awake_after_a_request_that_came_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Awake:
        def __init__(self, loop: object, seconds: float) -> None: ...

        def responded(self) -> None:
            calls.append("responded")

        def arrived(self) -> None:
            calls.append("arrived")

    monkeypatch.setattr("naiad_loop_handoff.workers.AwakeLoop", Awake)

    async def body(server: Server) -> None:
        await led_by(server, "m", rows)
        calls.clear()
        for value in range(3):
            await server.infer(rows("m", value))
        assert calls == ["arrived", "responded"] * 3
        for _ in range(2):  # of the first four one goes alone, as those before did
            calls.clear()
            await asyncio.gather(*[server.infer(rows("m", value)) for value in range(4)])
        assert calls == ["arrived"]

    backend = FakeBackend(answer=echo)
    backend.write(tmp_path, "m", "max_batch_size: 4 dynamic_batching {}")
    lead(tmp_path, body, naiad_loop_handoff, backend, Scheduling(AllAtOnce))


def test_many_requests_at_once_are_answered_in_full(tmp_path: Path) -> None:
    async def body(server: Server) -> None:
        await led_by(server, "m")
        answers = await asyncio.gather(*(answer_of(server, value) for value in range(1000)))
        assert answers == [[value] for value in range(1000)]

    backend = FakeBackend(answer=echo)
    backend.write(tmp_path, "m", "")
    lead(tmp_path, body, naiad_loop_handoff, backend)


def test_an_execution_that_waits_for_the_event_loop_is_preempted(tmp_path: Path) -> None:
    opened = threading.Event()

    def waits(batch: Batch) -> Answer:
        if batch.input("INPUT")[0] == WAITING:
            assert opened.wait(LONG)
        return echo(batch)

    async def body(server: Server) -> None:
        leader = await led_by(server, "m")
        waiting = asyncio.ensure_future(answer_of(server, WAITING))
        await until(lambda: threading.get_ident() != leader)
        assert await answer_of(server, 1, model="other") == [1]  # the server goes on
        assert not waiting.done()
        opened.set()
        assert await waiting == [WAITING]
        assert await answer_of(server, 2) == [2]
        assert (
            threading.get_ident() == threading.main_thread().ident
        )  # a leader that was preempted just now does not lead

    backend = FakeBackend(answer=waits)
    backend.write(tmp_path, "m", "")
    backend.write(tmp_path, "other", "")
    lead(tmp_path, body, naiad_loop_handoff, backend)


def test_a_model_that_is_asked_more_takes_over(tmp_path: Path) -> None:
    async def body(server: Server) -> None:
        first = await led_by(server, "m")
        second = await led_by(server, "other")
        assert threading.main_thread().ident not in (first, second)
        assert first != second

    backend = FakeBackend(answer=echo)
    backend.write(tmp_path, "m", "")
    backend.write(tmp_path, "other", "")
    lead(tmp_path, body, naiad_loop_handoff, backend)


def test_what_a_leader_raises_fails_its_request_alone(tmp_path: Path) -> None:
    def moody(batch: Batch) -> Answer:
        if batch.input("INPUT")[0] < 0:
            raise ValueError("not in this mood")
        return echo(batch)

    async def body(server: Server) -> None:
        leader = await led_by(server, "m")
        with pytest.raises(ModelFailedError, match="not in this mood"):
            await answer_of(server, -1)
        assert await answer_of(server, 1) == [1]
        if threading.get_ident() != leader:  # to log the traceback took too long for a quick model
            assert await led_by(server, "m") == leader

    backend = FakeBackend(answer=moody)
    backend.write(tmp_path, "m", "")
    lead(tmp_path, body, naiad_loop_handoff, backend)


def test_a_leader_that_wants_to_leave_loses_its_instance_and_not_the_loop(tmp_path: Path) -> None:
    async def body(server: Server) -> None:
        leader = await led_by(server, "m")
        lost = [asyncio.ensure_future(server.infer(request("m", DEADLY)))]
        with pytest.raises(WorkerDiedError, match="SystemExit"):
            await lost[0]
        assert threading.get_ident() != leader
        await until(lambda: server.ready().ready)
        assert await answer_of(server, 1) == [1]

    def leaves(batch: Batch) -> Answer:
        if batch.input("INPUT")[0] == DEADLY:
            raise SystemExit("the model left")
        return echo(batch)

    backend = FakeBackend(answer=leaves)
    backend.write(tmp_path, "m", "")
    lead(tmp_path, body, naiad_loop_handoff, backend)


def test_a_leader_that_answers_later_is_heard_on_any_thread(tmp_path: Path) -> None:
    def later(batch: Batch) -> Future[Answer]:
        future: Future[Answer] = Future()
        answer = echo(batch)
        if batch.input("INPUT")[0] == WAITING:
            threading.Thread(target=future.set_result, args=(answer,)).start()
        else:
            future.set_result(answer)
        return future

    async def body(server: Server) -> None:
        for _ in range(50):  # the watchdog takes the loop from a leader that gets no processor for 5 ms
            leader = await led_by(server, "m")
            assert await answer_of(server, WAITING) == [WAITING]
            if threading.get_ident() == leader:
                return
        raise AssertionError("no leader has heard of its answer")

    backend = FakeBackend(answer=later)
    backend.write(tmp_path, "m", "")
    lead(tmp_path, body, naiad_loop_handoff, backend)


def test_a_leader_is_unloaded_like_any_model(tmp_path: Path) -> None:
    async def body(server: Server) -> None:
        leader = await led_by(server, "m")
        await server.unload("m")
        await until(lambda: threading.get_ident() != leader)
        assert await answer_of(server, 1, model="other") == [1]
        await server.load("m")
        assert await answer_of(server, 1) == [1]

    backend = FakeBackend(answer=echo)
    backend.write(tmp_path, "m", "")
    backend.write(tmp_path, "other", "")
    lead(tmp_path, body, naiad_loop_handoff, backend, model_control_mode="explicit", load_model=("m", "other"))


def test_run_raises_the_error_of_its_coroutine(tmp_path: Path) -> None:
    async def body(server: Server) -> None:
        await led_by(server, "m")
        raise LookupError("nothing is here")

    backend = FakeBackend(answer=echo)
    backend.write(tmp_path, "m", "")
    with pytest.raises(LookupError, match="nothing is here"):
        lead(tmp_path, body, naiad_loop_handoff, backend)
