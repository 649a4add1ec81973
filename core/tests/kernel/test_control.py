"""Loading and unloading on request: what serves, what waits, what is told."""

import asyncio
import itertools
import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad.backend import Answer, Batch, ModelContext, Placement
from naiad.errors import (
    InvalidArgumentError,
    ModelNotReadyError,
    NaiadError,
    NotFoundError,
    ShuttingDownError,
    UnavailableError,
)
from naiad.reports import IndexEntry
from naiad.testing.backends import FakeBackend

from .loops import turns, until
from .serving import FLOATS, Steered, SteeredModel, off_the_loop, request, running, write_model

UNLOADED = [IndexEntry("m", 1, "UNAVAILABLE", "unloaded")]


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    """A backend with the model m in the repository."""
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    return backend


def explicit(root: Path, *plugins: object, **options: Any) -> Any:
    return running(root, *plugins, model_control_mode="explicit", **options)


async def value(server: Server, name: str = "m") -> float:
    response = await server.infer(request(name, 1))
    return float(response.outputs["OUTPUT"].array[0])


def states(server: Server) -> list[tuple[int, str]]:
    return [(entry.version, entry.state) for entry in server.index()]


# Who may load and unload


@pytest.mark.parametrize("mode", ["none", "poll"])
async def test_only_explicit_control_loads_and_unloads(tmp_path: Path, backend: FakeBackend, mode: str) -> None:
    async with running(tmp_path, backend, model_control_mode=mode) as server:
        for attempt in (server.load("m"), server.unload("m")):
            with pytest.raises(UnavailableError, match=f"the model control mode is '{mode}', start the server with --"):
                await attempt


async def test_explicit_control_starts_with_nothing(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        assert server.index() == [IndexEntry("m")]
        assert server.index(ready=True) == []
        assert server.ready().ready
        with pytest.raises(NotFoundError, match="Request for unknown model: 'm' is not found"):
            await server.infer(request("m", 1))


@pytest.mark.parametrize(("names", "loaded"), [(("b",), ["b"]), (("b", "b"), ["b"]), (("*",), ["a", "b"])])
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


# Loading


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


async def test_a_load_that_fails_says_why_and_leaves_others_alone(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "other")

    async with explicit(tmp_path, backend) as server:
        await server.load("other")
        backend.load_error = ValueError("corrupt at byte 7")
        with pytest.raises(InvalidArgumentError) as caught:
            await server.load("m")
        assert await value(server, "other") == 1
        (entry, _) = server.index()

    assert str(caught.value) == (
        "load failed for model 'm': version 1 is at UNAVAILABLE state: ValueError: corrupt at byte 7;"
    )
    assert entry == IndexEntry("m", 1, "UNAVAILABLE", str(caught.value))


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


# Reloading


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

    assert caller.cancelled()


# Unloading


async def test_an_unloaded_model_takes_no_more_requests(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        await server.unload("m")
        with pytest.raises(
            ModelNotReadyError, match="Request for unknown model: 'm' has no available versions: unloaded"
        ):
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


# Configurations and files that come with the request


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which temporary folders are made; empty again in the end."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def held(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def config(**fields: Any) -> str:
    return json.dumps({"backend": "fake", **fields})


async def test_a_configuration_may_come_with_the_request(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m", config(max_batch_size=16))
        assert server.model_config("m").max_batch_size == 16
        await server.load("m", config(max_batch_size=16))
        await server.load("m")
        assert server.model_config("m").max_batch_size == 0

    assert backend.events.count("load m 1") == 3


@pytest.mark.parametrize("text", ["{", "[]", '{"max_batch_sise": 1}', "x" * 100, '{"name": "other"}', "\0"])
async def test_a_configuration_that_makes_no_sense_is_refused_and_the_old_one_serves(
    tmp_path: Path, backend: FakeBackend, text: str
) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        with pytest.raises(InvalidArgumentError):
            await server.load("m", text)
        assert await value(server) == 1
        await server.load("m")
        assert server.index() == [IndexEntry("m", 1, "READY")]


async def test_files_may_come_with_the_request_for_a_model_without_a_folder(
    tmp_path: Path, backend: FakeBackend, temporary: Path
) -> None:
    seen: list[bytes] = []
    real = backend.load

    def load(context: ModelContext) -> Any:
        seen.append((context.version_directory / "weights").read_bytes())
        return real(context)

    backend.load = load  # type: ignore[method-assign]

    async with explicit(tmp_path, backend) as server:
        await server.load("new", config(), {"7/weights": b"\0\1"})
        assert (await server.infer(request("new", 1))).version == 7
        assert IndexEntry("new", 7, "READY") in server.index()
        assert len(held(temporary)) == 1
        await server.unload("new")
        await until(lambda: not held(temporary))

    assert seen == [b"\0\1"]


async def test_files_replace_the_whole_folder_for_one_load(
    tmp_path: Path, backend: FakeBackend, temporary: Path
) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m", config(), {"3/weights": b""})
        assert (await server.infer(request("m", 1))).version == 3
        await server.load("m")
        assert (await server.infer(request("m", 1))).version == 1
        await until(lambda: not held(temporary))


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "1/../../evil", "1/a\0b", "x" * 300])
async def test_files_that_leave_the_folder_are_refused(
    tmp_path: Path, backend: FakeBackend, temporary: Path, name: str
) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        with pytest.raises(InvalidArgumentError, match="must stay within model directory"):
            await server.load("m", config(), {"1/good": b"", name: b"evil"})
        assert await value(server) == 1
        assert server.index()[0].state == "READY"


async def test_files_need_a_configuration(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        with pytest.raises(InvalidArgumentError, match="'config' must be specified for model file override"):
            await server.load("m", files={"1/weights": b""})


async def test_files_of_a_load_that_fails_are_removed(tmp_path: Path, backend: FakeBackend, temporary: Path) -> None:
    async with explicit(tmp_path, backend) as server:
        backend.load_error = ValueError("corrupt")
        with pytest.raises(InvalidArgumentError, match="corrupt"):
            await server.load("m", config(), {"1/weights": b""})
        assert held(temporary) == []


async def test_files_are_removed_when_the_server_stops(tmp_path: Path, backend: FakeBackend, temporary: Path) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m", config(), {"1/weights": b""})
        assert len(held(temporary)) == 1


# A server that stops


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
