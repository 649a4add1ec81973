"""Workers: reports of instances, and the replacement of a worker that dies."""

import asyncio
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from naiad._engine.execution import Execution, ManagedInstance
from naiad.backend import Answer, Batch, Placement
from naiad.errors import InternalError, WorkerDiedError
from naiad.reports import InstanceReport
from naiad_config import ModelInstanceGroup
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, running, write_model
from naiad_testing.loops import turns, until
from naiad_testing.steered import Steered, SteeredInstance

from .deaths import DEADLY, dies_of_666, gated, states


async def test_the_request_that_killed_its_worker_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend = FakeBackend(answer=dies_of_666)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(WorkerDiedError) as caught:
            await server.infer(request("m", DEADLY))

    assert str(caught.value) == (
        "the worker of instance 'm_0' died while it held the request: SystemExit: the model left (deaths.py:16); "
        "it is being replaced"
    )
    assert "the worker of instance 'm_0' died" in caplog.text


async def test_a_request_that_waited_for_a_worker_that_died_took_no_time_to_compute() -> None:
    unused: Any = None
    placement = Placement("m_0", "CPU", 0, ModelInstanceGroup())
    instance = ManagedInstance(placement, unused, unused, unused, unused, lambda _, lost: None)
    waited = Execution(0, (1,), (), Batch([], []), "single", ())

    instance.died("it left", (waited,))

    assert waited.phases() == (0, 0, 0)
    assert waited.started_ns == waited.done_ns > 0


async def test_a_dead_worker_is_replaced_and_its_instance_closed(tmp_path: Path) -> None:
    backend = FakeBackend(answer=dies_of_666)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        response = await server.infer(request("m", 1))
        assert server.model_ready("m").ready

    assert response.outputs["OUTPUT"].array.tolist() == [1]
    assert backend.events.count("instantiate m_0") == 2
    assert backend.events.count("close m_0") == 2
    assert backend.events.count("close m 1") == 1


async def test_a_death_is_seen_while_the_worker_is_replaced(tmp_path: Path) -> None:
    backend, gate = gated(tmp_path)

    async with running(tmp_path, backend) as server:
        gate.open = False
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))

        reason = "its worker died (SystemExit: the model left (deaths.py:16)) and is being replaced"
        assert server.instances("m") == (InstanceReport("m_0", "DEAD", reason),)
        ready = server.model_ready("m")
        assert (ready.ready, ready.reasons) == (False, (f"instance 'm_0' is DEAD: {reason}",))
        assert not server.ready().ready
        assert reason in server.ready().reasons[0]

        gate.allow()
        await until(lambda: states(server) == ["READY"])
        assert server.ready().ready


async def test_requests_wait_for_the_new_worker_and_are_answered(tmp_path: Path) -> None:
    backend, gate = gated(tmp_path)

    async with running(tmp_path, backend) as server:
        gate.open = False
        deadly = asyncio.ensure_future(server.infer(request("m", DEADLY)))
        queued = asyncio.ensure_future(server.infer(request("m", 1)))
        await asyncio.wait([deadly])
        later = asyncio.ensure_future(server.infer(request("m", 2)))
        await turns()
        assert not queued.done()
        gate.allow()
        responses = await asyncio.gather(queued, later)

    assert isinstance(deadly.exception(), WorkerDiedError)
    assert [response.outputs["OUTPUT"].array.tolist() for response in responses] == [[1], [2]]


async def test_other_instances_go_on_while_one_is_replaced(tmp_path: Path) -> None:
    backend, gate = gated(tmp_path, "instance_group { count: 2 }")

    async with running(tmp_path, backend) as server:
        gate.open = False
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        assert sorted(states(server)) == ["DEAD", "READY"]
        ready = server.model_ready("m")
        assert ready.ready
        assert "is DEAD" in ready.reasons[0]
        assert server.ready().ready

        responses = await asyncio.gather(*(server.infer(request("m", value)) for value in range(10)))
        gate.allow()
        await until(lambda: states(server) == ["READY", "READY"])

    assert len(responses) == 10


async def test_batches_under_way_on_an_instance_that_dies_are_reported_once(tmp_path: Path) -> None:
    """An instance with futures dies with one batch in flight; the future's late answer must not free its place."""
    pending: list[Future[Answer]] = []

    def execute(batch: Batch) -> Any:
        if batch.input("INPUT")[0] == DEADLY:
            raise SystemExit("the model left")
        pending.append(Future())
        return pending[-1]

    backend = Steered(execute=execute, instantiate=lambda placement: SteeredInstance(backend, concurrency=2))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        in_flight = asyncio.ensure_future(server.infer(request("m", 1)))
        await until(lambda: pending)
        deadly = asyncio.ensure_future(server.infer(request("m", DEADLY)))
        message = await asyncio.gather(in_flight, deadly, return_exceptions=True)
        assert [type(error) for error in message] == [WorkerDiedError, WorkerDiedError]

        pending.pop().set_result({"OUTPUT": [1.0]})
        await until(lambda: states(server) == ["READY"])
        calls = [asyncio.ensure_future(server.infer(request("m", value))) for value in range(3)]
        await until(lambda: len(pending) == 2)
        await turns(20)
        assert len(pending) == 2
        pending[0].set_exception(InternalError("no"))
        pending[1].set_exception(InternalError("no"))
        await until(lambda: len(pending) == 3)
        pending[2].set_exception(InternalError("no"))
        failures = await asyncio.gather(*calls, return_exceptions=True)

    assert [str(failure) for failure in failures] == ["no"] * 3


async def test_an_idle_worker_keeps_no_batch_alive(tmp_path: Path) -> None:
    import gc
    import weakref

    backend = Steered()
    write_model(tmp_path, "m")
    seen: list[weakref.ref[Any]] = []
    backend.execute = lambda batch: (
        seen.append(weakref.ref(batch.requests[0].inputs["INPUT"].payload))
        or {  # type: ignore[func-returns-value]
            "OUTPUT": batch.input("INPUT") + 1
        }
    )

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        await until(lambda: gc.collect() >= 0 and seen[0]() is None)


async def test_instances_report_what_they_do(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", 'instance_group { name: "pair" count: 2 }')

    async with running(tmp_path, backend) as server:
        assert server.instances("m") == (InstanceReport("pair_0", "READY"), InstanceReport("pair_1", "READY"))
        backend.hold()
        call = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(backend.wait_until_held)
        busy = [report.busy_seconds > 0 for report in server.instances("m")]
        backend.release()
        await call

    assert sorted(busy) == [False, True]


async def test_an_instance_may_say_that_it_is_not_ready(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        backend.not_ready = "its cache is cold"
        ready = server.model_ready("m")
        assert (ready.ready, ready.reasons) == (False, ("instance 'm_0' is not ready: its cache is cold",))
        assert server.ready().reasons == ("model 'm' version 1: instance 'm_0' is not ready: its cache is cold",)
        backend.not_ready = ""
        assert server.ready().ready


async def test_an_instance_whose_ready_raises_is_not_ready_for_that_reason(tmp_path: Path) -> None:
    class Confused(SteeredInstance):
        def ready(self) -> str:
            raise RuntimeError("who am I?")

    backend = Steered(instantiate=lambda placement: Confused(backend))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        (reason,) = server.model_ready("m").reasons
    assert reason.startswith(f"instance 'm_0' is not ready: RuntimeError: who am I? ({Path(__file__).name}:")


async def test_a_close_that_raises_harms_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(SteeredInstance):
        def close(self) -> None:
            raise RuntimeError("the drawer is stuck")

    backend = Steered(instantiate=lambda placement: Stuck(backend))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        assert await server.stop()

    (record,) = [record for record in caplog.records if record.getMessage() == "closing instance 'm_0' failed"]
    assert record.exc_text is not None
    assert record.exc_text.splitlines()[1].endswith("in close")
