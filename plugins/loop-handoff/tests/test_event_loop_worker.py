"""Models that execute on the event loop's own thread: the same promises, without a thread."""

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

import naiad_loop_handoff
from naiad import Server
from naiad.backend import Answer, Batch
from naiad.errors import ModelFailedError, WorkerDiedError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running
from naiad_testing.loops import until

DEADLY = 666.0
ON_LOOP = 'parameters { key: "execute_on" value { string_value: "event_loop" } }'


def dies_of_666(batch: Batch) -> Answer:
    if batch.input("INPUT")[0] == DEADLY:
        raise SystemExit("the model left")
    return {"OUTPUT": batch.input("INPUT")}


async def answer_of(server: Server, *values: float) -> list[float]:
    response = await server.infer(request("m", *values))
    outputs: list[float] = response.outputs["OUTPUT"].array.tolist()
    return outputs


async def test_the_model_executes_on_the_thread_of_the_loop(tmp_path: Path) -> None:
    threads: list[int] = []

    def echo(batch: Batch) -> Answer:
        threads.append(threading.get_ident())
        return {"OUTPUT": batch.input("INPUT")}

    backend = FakeBackend(answer=echo)
    backend.write(tmp_path, "m", ON_LOOP)

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        assert await answer_of(server, 1, 2) == [1, 2]
        counted = server.statistics("m")[0].success.count

    assert threads == [threading.get_ident()]
    assert counted == 1
    assert [event for event in backend.events if event.startswith("close")] == ["close m_0", "close m 1"]


async def test_what_it_raises_fails_its_request_alone(tmp_path: Path) -> None:
    def moody(batch: Batch) -> Answer:
        if batch.input("INPUT")[0] < 0:
            raise ValueError("not in this mood")
        return {"OUTPUT": batch.input("INPUT")}

    backend = FakeBackend(answer=moody)
    backend.write(tmp_path, "m", ON_LOOP)

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        with pytest.raises(ModelFailedError, match="not in this mood"):
            await answer_of(server, -1)
        assert await answer_of(server, 1) == [1]


async def test_one_that_wants_to_leave_loses_its_instance_and_not_the_server(tmp_path: Path) -> None:
    backend = FakeBackend(answer=dies_of_666)
    backend.write(tmp_path, "m", ON_LOOP)

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        with pytest.raises(WorkerDiedError, match="SystemExit"):
            await server.infer(request("m", DEADLY))
        await until(lambda: server.ready().ready)

        assert await answer_of(server, 1) == [1]


async def test_an_answer_that_comes_later_from_another_thread_arrives(tmp_path: Path) -> None:
    def later(batch: Batch) -> "Future[Answer]":
        future: Future[Answer] = Future()
        threading.Thread(target=future.set_result, args=({"OUTPUT": batch.input("INPUT")},)).start()
        return future

    backend = FakeBackend(answer=later)  # type: ignore[arg-type]
    backend.write(tmp_path, "m", ON_LOOP)

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        assert await answer_of(server, 3) == [3]


async def test_one_that_cannot_be_made_fails_its_load(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", ON_LOOP)
    backend.instance_error = ValueError("no memory for it")

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        reasons = [entry.reason for entry in server.index()]

    assert "no memory for it" in reasons[0]


async def test_a_slot_that_there_is_not_is_refused(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", ON_LOOP.replace("event_loop", "moon"))

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        reasons = [entry.reason for entry in server.index()]

    assert "parameter 'execute_on' of model 'm' is 'moon'; it can be event_loop or thread" in reasons[0]
    assert "load m 1" not in backend.events


async def test_a_decoupled_model_is_refused(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", ON_LOOP + "model_transaction_policy { decoupled: true }")

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        (entry,) = server.index()

    assert "model 'm' is decoupled and cannot execute on the event loop" in entry.reason
