"""Several instances, several batches on one instance, and many callers at once."""

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from naiad.backend import Answer, Batch
from naiad.errors import ModelFailedError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import FLOATS, off_the_loop, request, rows, running, write_model
from naiad_testing.loops import until
from naiad_testing.scheduling import AllAtOnce, Scheduling
from naiad_testing.steered import Steered, SteeredInstance

BATCHED = "max_batch_size: 8 dynamic_batching { }"


async def test_several_instances_execute_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(3, timeout=10)

    def answer(batch: Batch) -> Answer:
        together.wait()
        return {"OUTPUT": batch.input("INPUT")}

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m", "instance_group { count: 3 }")

    async with running(tmp_path, backend) as server:
        responses = await asyncio.gather(*(server.infer(request("m", value)) for value in range(3)))

    assert [response.outputs["OUTPUT"].array.tolist() for response in responses] == [[0], [1], [2]]


async def test_one_instance_never_executes_two_batches_at_the_same_time(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", value))) for value in range(5)]
        await off_the_loop(backend.wait_until_held)
        with pytest.raises(TimeoutError):
            backend.wait_until_held(timeout=0.01)
        backend.release()
        await asyncio.gather(*calls)

    assert [batch.input("INPUT").tolist() for batch in backend.batches] == [[0], [1], [2], [3], [4]]


async def test_an_instance_that_answers_with_futures_takes_several_batches(tmp_path: Path) -> None:
    pending: list[tuple[Batch, Future[Answer]]] = []
    full = threading.Event()

    def execute(batch: Batch) -> Future[Answer]:
        pending.append((batch, Future()))
        if len(pending) == 3:
            full.set()
        return pending[-1][1]

    backend = Steered(execute=execute, instantiate=lambda placement: SteeredInstance(backend, concurrency=3))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        calls = [asyncio.ensure_future(server.infer(request("m", value))) for value in range(4)]
        await off_the_loop(lambda: full.wait(10) or None)
        assert len(pending) == 3
        assert server.instances("m")[0].busy_seconds > 0
        for batch, future in reversed(pending[:3]):
            future.set_result({"OUTPUT": batch.input("INPUT")})
        await asyncio.gather(*calls[:3])
        await until(lambda: len(pending) == 4)
        assert server.instances("m")[0].busy_seconds > 0
        pending[3][1].set_result({"OUTPUT": pending[3][0].input("INPUT")})
        responses = await asyncio.gather(*calls)
        assert server.instances("m")[0].busy_seconds == 0

    assert [response.outputs["OUTPUT"].array.tolist() for response in responses] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("end", ["exception", "exit", "cancelled"])
async def test_a_future_that_fails_fails_its_batch(tmp_path: Path, end: str) -> None:
    def execute(batch: Batch) -> Future[Answer]:
        future: Future[Answer] = Future()
        if end == "cancelled":
            future.cancel()
        else:
            future.set_exception(ValueError("lost") if end == "exception" else SystemExit("lost"))
        return future

    backend = Steered(execute=execute)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(ModelFailedError, match=r"instance 'm_0' failed: (ValueError|SystemExit|CancelledError)"):
            await server.infer(request("m", 1))
        assert server.model_ready("m").ready


async def test_a_passive_instance_is_made_and_never_used(tmp_path: Path) -> None:
    used: list[str] = []

    class Named(SteeredInstance):
        def __init__(self, name: str) -> None:
            super().__init__(backend)
            self.name = name

        def execute(self, batch: Batch) -> Answer | Future[Answer]:
            used.append(self.name)
            return super().execute(batch)

    backend = Steered(instantiate=lambda placement: Named(placement.name))
    groups = 'instance_group [ { name: "a" passive: true }, { name: "b" } ]'
    write_model(tmp_path, "m", FLOATS + groups)

    async with running(tmp_path, backend) as server:
        await asyncio.gather(*(server.infer(request("m", 1)) for _ in range(4)))

    assert {placement.name for placement in backend.placements} == {"a_0", "b_0"}
    assert used == ["b_0"] * 4


async def test_every_caller_gets_its_own_answer_under_many_at_once(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED + " instance_group { count: 2 }")

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        responses = await asyncio.gather(*(server.infer(rows("m", value, id=str(value))) for value in range(1000)))

    assert [float(response.outputs["OUTPUT"].array[0, 0]) for response in responses] == list(range(1000))
    assert [response.id for response in responses] == [str(value) for value in range(1000)]
