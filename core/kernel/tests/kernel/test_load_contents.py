"""Configurations and files that come with a load request."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, NaiadError, NotFoundError
from naiad.reports import IndexEntry
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request
from naiad_testing.loops import until

from .control import UNLOADED, explicit, value


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
async def test_a_configuration_that_is_invalid_is_refused_and_the_old_one_serves(
    tmp_path: Path, backend: FakeBackend, text: str
) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        with pytest.raises(InvalidArgumentError):
            await server.load("m", text)
        assert await value(server) == 1
        await server.load("m")
        assert server.index() == [IndexEntry("m", 1, "READY")]


@pytest.mark.parametrize("text", ["{", '{"max_batch_sise": 1}', '{"backend": "other"}'])
async def test_a_refused_configuration_of_a_model_that_does_not_serve_changes_nothing(
    tmp_path: Path, backend: FakeBackend, text: str
) -> None:
    async with explicit(tmp_path, backend) as server:
        with pytest.raises(InvalidArgumentError):
            await server.load("m", text)
        assert server.index() == [IndexEntry("m", 0, "UNAVAILABLE", "unloaded")]
        assert server.ready().ready

        await server.load("m")
        await server.unload("m")
        with pytest.raises(InvalidArgumentError):
            await server.load("m", text)
        await until(lambda: server.index() == UNLOADED)
        assert server.ready().ready


@pytest.mark.parametrize("step", ["complete", "load"])
async def test_a_new_version_that_fails_in_a_request_leaves_the_server_ready(
    tmp_path: Path, backend: FakeBackend, step: str
) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        setattr(backend, step, fails)
        with pytest.raises(NaiadError, match="it broke"):
            await server.load("m", config(), {"7/weights": b""})

        assert server.ready().ready
        assert [entry.version for entry in server.index(ready=True)] == [1]


def fails(_context: ModelContext) -> Any:
    raise ValueError("it broke")


async def test_refused_files_of_a_model_without_a_folder_leave_nothing(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        with pytest.raises(InvalidArgumentError):
            await server.load("new", config(), {"../weights": b""})
        assert server.index() == [IndexEntry("m")]
        assert server.ready().ready
        with pytest.raises(NotFoundError):
            await server.infer(request("new", 1))


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
        with pytest.raises(InvalidArgumentError, match="file override"):
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
