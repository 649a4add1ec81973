"""Reloading and unloading: no request is lost, and the old generation serves until the new one is ready."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad.backend import Answer, Batch, Placement
from naiad.errors import InvalidArgumentError, ModelNotReadyError, NaiadError
from naiad.reports import IndexEntry
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import FLOATS, off_the_loop, request, write_model
from naiad_testing.loops import until
from naiad_testing.steered import Steered, SteeredModel

from .control import UNLOADED, explicit, states, value


async def test_a_failed_reload_keeps_the_old_generation_and_says_so(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        backend.write(tmp_path, "m", "max_batch_size: 4")
        backend.load_error = ValueError("corrupt")
        with pytest.raises(InvalidArgumentError, match="corrupt"):
            await server.load("m")

        assert await value(server) == 1
        (entry,) = server.index()
        assert entry.state == "READY"
        assert entry.reason.startswith("the last reload failed and the earlier generation serves: ")
        assert "ValueError: corrupt" in entry.reason
        assert server.ready().ready

        backend.load_error = None
        await server.load("m")
        assert server.index() == [IndexEntry("m", 1, "READY")]
        assert server.model_config("m").max_batch_size == 4


async def test_a_version_that_failed_beside_one_that_serves_is_not_ready_until_it_is_gone(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        backend.write(tmp_path, "m", versions=(2,))
        backend.load_error = ValueError("corrupt")
        with pytest.raises(InvalidArgumentError):
            await server.load("m")
        assert states(server) == [(1, "READY"), (2, "UNAVAILABLE")]
        assert "model 'm' version 2 is UNAVAILABLE" in server.ready().reasons[0]

        backend.load_error = None
        (tmp_path / "m" / "2").rmdir()
        await server.load("m")
        assert states(server) == [(1, "READY")]
        assert server.ready().ready


class Numbered(SteeredModel):
    """A model whose answers tell which generation it is."""

    def __init__(self, backend: Steered, number: int) -> None:
        super().__init__(backend)
        self._number = number

    def instantiate(self, placement: Placement) -> Any:
        return NumberedInstance(self._number)


class NumberedInstance:
    def __init__(self, number: int) -> None:
        self._number = number

    def execute(self, batch: Batch) -> Answer:
        return {"OUTPUT": np.full_like(batch.input("INPUT"), self._number)}

    def close(self) -> None:
        return None


async def test_reloading_under_load_fails_not_one_request(tmp_path: Path) -> None:
    numbers = itertools.count(1)
    backend = Steered(load=lambda context: Numbered(backend, next(numbers)))
    write_model(tmp_path, "m", FLOATS + "instance_group { count: 2 }")
    served: list[float] = []
    stop = False

    async def client(server: Server) -> None:
        while not stop:
            served.append(await value(server))

    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        clients = [asyncio.ensure_future(client(server)) for _ in range(8)]
        for generation in range(1, 6):
            await until(lambda: served.count(generation) > 20)  # noqa: B023 - awaited at once
            (tmp_path / "m" / "1" / "weights").write_text(str(generation))
            await server.load("m")
        stop = True
        await asyncio.gather(*clients)
        assert await value(server) == 6

    assert set(served) >= {1, 2, 3, 4, 5}


async def test_what_the_old_generation_took_in_it_answers(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", number))) for number in range(3)]
        await off_the_loop(backend.wait_until_held)
        backend.write(tmp_path, "m", "max_batch_size: 4")
        await server.load("m")
        assert not any(call.done() for call in calls)
        assert "close m 1" not in backend.events
        backend.release()
        answers = await asyncio.gather(*calls)
        await until(lambda: "close m 1" in backend.events)

    assert [float(answer.outputs["OUTPUT"].array[0]) for answer in answers] == [0, 1, 2]


async def test_concurrent_loads_of_one_model_load_it_once(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await asyncio.gather(*(server.load("m") for _ in range(10)))
        assert states(server) == [(1, "READY")]

    assert backend.events.count("load m 1") == 1


async def test_concurrent_loads_and_unloads_end_in_one_of_both_states(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        for _ in range(10):
            await asyncio.gather(server.load("m"), server.unload("m"), server.load("m"))
        assert await value(server) == 1
        await server.unload("m")
        await until(lambda: server.index() == UNLOADED)

    assert backend.events.count("close m 1") == backend.events.count("load m 1")


async def test_an_unloaded_model_takes_no_more_requests(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        await server.unload("m")
        with pytest.raises(ModelNotReadyError, match=r"'m' .*: unloaded"):
            await server.infer(request("m", 1))
        await until(lambda: server.index() == UNLOADED)
        assert server.ready().ready

    assert backend.events[-2:] == ["close m_0", "close m 1"]


async def test_an_unloaded_model_answers_what_it_took_in(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", number))) for number in range(3)]
        await off_the_loop(backend.wait_until_held)
        await server.unload("m")
        assert states(server) == [(1, "UNLOADING")]
        backend.release()
        answers = await asyncio.gather(*calls)
        await until(lambda: server.index() == UNLOADED)

    assert [float(answer.outputs["OUTPUT"].array[0]) for answer in answers] == [0, 1, 2]


async def test_unloading_what_is_not_loaded_does_nothing(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.unload("m")
        await server.unload("ghost", unload_dependents=True)

        assert server.index() == [IndexEntry("m")]


async def test_an_unloaded_model_can_be_loaded_again_even_while_it_drains(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        backend.hold()
        draining = asyncio.ensure_future(server.infer(request("m", 7)))
        await off_the_loop(backend.wait_until_held)
        await server.unload("m")
        await server.load("m")
        assert states(server) == [(1, "READY")]
        backend.release()
        assert await value(server) == 1
        await draining
        await until(lambda: "close m 1" in backend.events)
        assert states(server) == [(1, "READY")]


async def test_a_model_that_fails_after_it_was_unloaded_tells_why(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        await server.unload("m")
        await until(lambda: server.index() == UNLOADED)
        (tmp_path / "m" / "config.pbtxt").write_text("nonsense")
        with pytest.raises(NaiadError):
            await server.load("m")
        (entry,) = server.index()

    assert (entry.version, entry.state) == (1, "UNAVAILABLE")
    assert "config.pbtxt:1:" in entry.reason


async def test_unloading_a_model_that_failed_makes_the_server_ready(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        backend.load_error = ValueError("corrupt")
        with pytest.raises(InvalidArgumentError):
            await server.load("m")
        assert not server.ready().ready
        await server.unload("m")

        assert server.ready().ready
