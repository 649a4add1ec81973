"""Explicit model control: loads on request, the version that serves then, and errors."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, ModelNotReadyError, NotFoundError, ShuttingDownError, UnavailableError
from naiad.reports import IndexEntry
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, running, write_model
from naiad_testing.loops import turns, until
from naiad_testing.steered import Steered, SteeredModel

from .control import explicit, states, value


@pytest.mark.parametrize("mode", ["none", "poll"])
async def test_only_explicit_control_loads_and_unloads(tmp_path: Path, backend: FakeBackend, mode: str) -> None:
    async with running(tmp_path, backend, model_control_mode=mode) as server:
        for attempt in (server.load("m"), server.unload("m")):
            with pytest.raises(UnavailableError, match="explicit model load / unload is not allowed if") as caught:
                await attempt
            assert f"'{mode}'" in str(caught.value)


async def test_explicit_control_starts_with_nothing(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        assert server.index() == [IndexEntry("m")]
        assert server.index(ready=True) == []
        assert server.ready().ready
        with pytest.raises(NotFoundError, match="Request for unknown model: 'm' is not found"):
            await server.infer(request("m", 1))


@pytest.mark.parametrize(
    ("names", "loaded"), [(("b",), ["b"]), (("b", "b"), ["b"]), (("*",), ["a", "b"]), (("*", "*"), ["a", "b"])]
)
async def test_explicit_control_starts_with_the_models_asked_for(
    tmp_path: Path, names: tuple[str, ...], loaded: list[str]
) -> None:
    backend = FakeBackend()
    for name in "ab":
        backend.write(tmp_path, name)

    async with explicit(tmp_path, backend, load_model=names) as server:
        assert [entry.name for entry in server.index(ready=True)] == loaded


async def test_a_start_up_model_that_is_not_there_is_unavailable(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend, load_model=("ghost", "m")) as server:
        index = {entry.name: entry for entry in server.index()}
        assert index["m"].state == "READY"
        assert index["ghost"].state == "UNAVAILABLE"
        assert "there is no folder of that name" in index["ghost"].reason
        assert not server.ready().ready


async def test_a_model_is_loaded_and_serves(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load(" m ")

        assert await value(server) == 1
        assert states(server) == [(1, "READY")]


async def test_an_unchanged_model_is_not_loaded_again(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        await server.load("m")

    assert backend.events.count("load m 1") == 1


async def test_a_changed_model_is_loaded_again_and_the_old_one_freed(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        backend.write(tmp_path, "m", "max_batch_size: 4")
        await server.load("m")
        await until(lambda: "close m 1" in backend.events)

        assert server.model_config("m").max_batch_size == 4

    assert backend.events.count("load m 1") == 2


async def test_a_new_version_takes_over_from_the_old_one(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        backend.write(tmp_path, "m", versions=(2,))
        await server.load("m")
        assert (await server.infer(request("m", 1))).version == 2
        await until(lambda: states(server) == [(1, "UNAVAILABLE"), (2, "READY")])
        assert server.index()[0].reason == "unloaded"
        assert server.ready().ready
        with pytest.raises(ModelNotReadyError, match="version 1 is not at ready state: unloaded"):
            await server.infer(request("m", 1, version=1))


@pytest.mark.parametrize("name", ["", "  ", "..", "a/b", "../m", "a\\b", "a\0b", "x" * 300])
async def test_a_name_that_leaves_the_repository_is_refused(tmp_path: Path, backend: FakeBackend, name: str) -> None:
    async with explicit(tmp_path, backend) as server:
        with pytest.raises(InvalidArgumentError):
            await server.load(name)
        await server.unload(name)


async def test_a_model_that_is_not_there_is_not_found(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        with pytest.raises(NotFoundError, match="failed to load 'ghost', failed to poll from model repository"):
            await server.load("ghost")
        assert server.index() == [IndexEntry("m")]


async def test_a_load_that_fails_says_why_and_leaves_others_alone(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.write(tmp_path, "other")

    async with explicit(tmp_path, backend) as server:
        await server.load("other")
        backend.load_error = ValueError("corrupt at byte 7")
        with pytest.raises(InvalidArgumentError) as caught:
            await server.load("m")
        assert await value(server, "other") == 1
        (entry, _) = server.index()

    reason = "version 1: ValueError: corrupt at byte 7"
    triton = "version 1 is at UNAVAILABLE state: ValueError: corrupt at byte 7;"
    assert str(caught.value) == f"failed to load 'm', load failed for model 'm': {triton}"
    assert entry == IndexEntry("m", 1, "UNAVAILABLE", reason)
    assert f"model 'm' is UNAVAILABLE: {reason}" in caplog.messages


async def test_a_failed_load_is_tried_again_on_request_though_nothing_changed(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with explicit(tmp_path, backend) as server:
        backend.load_error = OSError("the network drive sleeps")
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match="the network drive sleeps"):
                await server.load("m")
        backend.load_error = None
        await server.load("m")

        assert await value(server) == 1
        assert server.index() == [IndexEntry("m", 1, "READY")]


async def test_a_load_goes_on_when_its_caller_goes_away(tmp_path: Path) -> None:
    going, gone = threading.Event(), threading.Event()

    def load(context: ModelContext) -> Any:
        going.set()
        assert gone.wait(10)
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with explicit(tmp_path, backend) as server:
        caller = asyncio.ensure_future(server.load("m"))
        await off_the_loop(lambda: going.wait(10) and None)
        caller.cancel()
        await turns()
        gone.set()
        await until(lambda: states(server) == [(1, "READY")])
        assert server._models.records["m"].explicit

    assert caller.cancelled()


async def test_a_load_is_given_up_when_the_server_stops(tmp_path: Path) -> None:
    going, gone = threading.Event(), threading.Event()

    def instantiate(placement: object) -> Any:
        going.set()
        assert gone.wait(10)
        return SteeredModel(backend)

    backend = Steered(instantiate=instantiate)
    write_model(tmp_path, "m")

    async with explicit(tmp_path, backend) as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(lambda: going.wait(10) and None)
        assert await server.stop()
        with pytest.raises(ShuttingDownError, match="the load was given up"):
            await loading
        with pytest.raises(ShuttingDownError):
            await server.load("m")
    gone.set()
