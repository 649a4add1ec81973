"""Replacing dead workers: tried again with growing patience, and given up by a server that stops."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from naiad.errors import ModelNotReadyError, NaiadError, WorkerDiedError
from naiad_testing.in_loop import request, running
from naiad_testing.loops import jump, turns, until
from naiad_testing.steered import SteeredInstance

from .deaths import DEADLY, gated, states


async def test_a_replacement_that_fails_is_tried_again_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend, gate = gated(tmp_path)

    async with running(tmp_path, backend) as server:
        gate.error = MemoryError("no room")
        deadly = asyncio.ensure_future(server.infer(request("m", DEADLY)))
        queued = asyncio.ensure_future(server.infer(request("m", 1)))
        await asyncio.wait([deadly])
        (error,) = await asyncio.gather(queued, return_exceptions=True)
        assert isinstance(error, ModelNotReadyError)
        assert error.retry_after == 1.0
        assert "a new one failed to start (MemoryError: no room" in str(error)
        with pytest.raises(ModelNotReadyError, match="it has no live instance: its worker died and a new one failed"):
            await server.infer(request("m", 2))
        assert not server.model_ready("m").ready

        gate.error = None
        await jump(0.2)
        await until(lambda: states(server) == ["READY"])
        response = await server.infer(request("m", 3))

    assert response.outputs["OUTPUT"].array.tolist() == [3]
    assert gate.tries == 3


async def test_replacements_that_keep_failing_become_rare(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend, gate = gated(tmp_path)
    waits = []

    async with running(tmp_path, backend) as server:
        gate.error = MemoryError("no room")
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        for failures in range(1, 13):
            await until(lambda: caplog.text.count("; trying again") == failures)  # noqa: B023 - awaited at once
            waits.append(await seconds_until(lambda: gate.tries > failures + 1))  # noqa: B023 - awaited at once

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]


async def seconds_until(done: Callable[[], bool]) -> float:
    """How far the loop's clock must move on, in tenths of a second, until it is so."""
    tenths = 0
    while True:
        await turns()
        tenths += 1
        await jump(0.1)
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("naiad-m_0")]
        for thread in threads:
            await asyncio.to_thread(thread.join)
        if done():
            return tenths / 10


async def test_a_worker_that_dies_again_and_again_is_replaced_with_growing_patience(tmp_path: Path) -> None:
    backend, _ = gated(tmp_path)

    async with running(tmp_path, backend) as server:
        for wait in (0.0, 0.1, 0.2, 0.4):
            with pytest.raises(WorkerDiedError):
                await server.infer(request("m", DEADLY))
            assert states(server) == ["DEAD"]
            await jump(wait + 0.01)
            await until(lambda: states(server) == ["READY"])


async def test_while_a_worker_that_died_again_is_away_requests_are_refused(tmp_path: Path) -> None:
    backend, _ = gated(tmp_path)

    async with running(tmp_path, backend) as server:
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        with pytest.raises(ModelNotReadyError, match="it has no live instance"):
            await server.infer(request("m", 1))


async def test_a_server_stops_while_a_worker_is_being_replaced(tmp_path: Path) -> None:
    backend, gate = gated(tmp_path)
    closed = threading.Event()

    class Closing(SteeredInstance):
        def close(self) -> None:
            closed.set()

    async with running(tmp_path, backend) as server:
        gate.open = False
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        await until(lambda: gate.tries == 2)
        gate.make = lambda: Closing(backend)
        stopping = asyncio.ensure_future(server.stop())
        await turns()
        gate.allow()

        assert await stopping

    assert closed.is_set()


async def test_an_instance_that_proved_itself_may_die_again_like_the_first_time(tmp_path: Path) -> None:
    backend, gate = gated(tmp_path)

    async with running(tmp_path, backend) as server:
        for _ in range(3):
            (slot,) = server._models.find("m")._instances.all
            slot.live_since -= 31  # it was ready for that long already
            deadly = asyncio.ensure_future(server.infer(request("m", DEADLY)))
            queued = asyncio.ensure_future(server.infer(request("m", 1)))
            await asyncio.wait([deadly])
            response = await queued
            assert response.outputs["OUTPUT"].array.tolist() == [1]

    assert gate.tries == 4


async def test_a_load_without_a_thread_for_its_instance_fails_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end waited for a worker that had never begun."""
    backend, _ = gated(tmp_path)
    shortage = Shortage(monkeypatch)

    async with running(tmp_path, backend, model_control_mode="explicit") as server:
        shortage.lasts = True
        with pytest.raises(NaiadError, match=r"the worker of instance 'm_0' failed: RuntimeError: .*; raise"):
            await server.load("m")
        shortage.lasts = False
        await server.load("m")
        response = await server.infer(request("m", 3))

    assert response.outputs["OUTPUT"].array.tolist() == [3]


async def test_a_replacement_without_a_thread_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The task that replaces instances ended with the error, and the model was dead until the next load."""
    backend, _ = gated(tmp_path)
    shortage = Shortage(monkeypatch)

    async with running(tmp_path, backend) as server:
        shortage.lasts = True
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        await until(lambda: "; trying again" in caplog.text)
        shortage.lasts = False
        await jump(0.2)
        await until(lambda: states(server) == ["READY"])
        response = await server.infer(request("m", 3))

    assert response.outputs["OUTPUT"].array.tolist() == [3]


class Shortage:
    """While it `lasts`, the system has no thread for an instance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lasts = False
        start = threading.Thread.start

        def start_if_there_is_one(thread: threading.Thread) -> None:
            if self.lasts and thread.name.startswith("naiad-m_0"):
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_if_there_is_one)
