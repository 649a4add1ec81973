"""Polling of repositories: new and changed models are loaded, removed ones unloaded."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from naiad import Server
from naiad.errors import NotFoundError
from naiad.reports import IndexEntry
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running
from naiad_testing.loops import jump, passing_time, until


@asynccontextmanager
async def polling(root: Path, *plugins: object, **options: Any) -> AsyncIterator[Server]:
    """A server that looks at its repository when the test moves the clock on by 15 seconds."""
    async with running(root, *plugins, model_control_mode="poll", **options) as server:
        yield server


async def look(server: Server) -> None:
    """Let the server look at its repositories now."""
    await server._models.follow_disk()


async def test_the_server_looks_again_after_the_time_of_its_option(tmp_path: Path, backend: FakeBackend) -> None:
    async with polling(tmp_path, backend, repository_poll_secs=60.0) as server:
        backend.write(tmp_path, "new")
        await jump(59)
        assert [entry.name for entry in server.index(ready=True)] == ["m"]
        await jump(2)
        await until(lambda: len(server.index(ready=True)) == 2)

        backend.write(tmp_path, "newer")
        with passing_time():  # the poll before may not be over yet
            await until(lambda: len(server.index(ready=True)) == 3)


async def test_without_polling_there_is_no_scan(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        backend.write(tmp_path, "new")
        await jump(3600)

        assert server.index() == [IndexEntry("m", 1, "READY")]
        assert await server.fresh_index() == [IndexEntry("m", 1, "READY"), IndexEntry("new")]


async def test_a_new_model_is_loaded(tmp_path: Path, backend: FakeBackend) -> None:
    async with polling(tmp_path, backend) as server:
        backend.write(tmp_path, "new")
        await look(server)

        assert (await server.infer(request("new", 1))).model_name == "new"


async def test_an_unchanged_model_is_left_alone(tmp_path: Path, backend: FakeBackend) -> None:
    async with polling(tmp_path, backend) as server:
        await look(server)
        (tmp_path / "m" / "config.pbtxt").touch()
        await look(server)

    assert backend.events.count("load m 1") == 1


@pytest.mark.parametrize("change", ["config", "weights", "version"])
async def test_a_changed_model_is_loaded_again(tmp_path: Path, backend: FakeBackend, change: str) -> None:
    async with polling(tmp_path, backend) as server:
        if change == "config":
            backend.write(tmp_path, "m", "max_batch_size: 2")
        elif change == "weights":
            (tmp_path / "m" / "1" / "weights").write_text("new")
        else:
            (tmp_path / "m" / "2").mkdir()
        await look(server)

        assert len([event for event in backend.events if event.startswith("load m")]) == 2


async def test_a_model_that_is_gone_is_unloaded_and_no_longer_listed(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "other")

    async with polling(tmp_path, backend) as server:
        shutil.rmtree(tmp_path / "m")
        await look(server)
        await until(lambda: "close m 1" in backend.events)
        await until(lambda: len(server.index()) == 1)
        assert server.ready().ready


async def test_a_model_that_comes_back_is_loaded_again(tmp_path: Path, backend: FakeBackend) -> None:
    async with polling(tmp_path, backend) as server:
        (tmp_path / "m").rename(tmp_path / ".away")
        await look(server)
        (tmp_path / ".away").rename(tmp_path / "m")
        await look(server)

        assert server.index() == [IndexEntry("m", 1, "READY")]


async def test_a_server_whose_last_model_is_gone_is_ready_for_the_next(tmp_path: Path, backend: FakeBackend) -> None:
    async with polling(tmp_path, backend) as server:
        shutil.rmtree(tmp_path / "m")
        await look(server)

        assert server.index(ready=True) == []
        assert server.ready().ready


async def test_a_failed_model_is_not_tried_again_until_it_changes(tmp_path: Path, backend: FakeBackend) -> None:
    backend.load_error = ValueError("corrupt")

    async with polling(tmp_path, backend) as server:
        await look(server)
        assert backend.events.count("load m 1") == 1

        backend.load_error = None
        (tmp_path / "m" / "1" / "weights").write_text("mended")
        await look(server)
        assert server.index() == [IndexEntry("m", 1, "READY")]


async def test_a_change_for_the_worse_keeps_the_old_generation(tmp_path: Path, backend: FakeBackend) -> None:
    async with polling(tmp_path, backend) as server:
        (tmp_path / "m" / "config.pbtxt").write_text("nonsense")
        await look(server)

        assert (await server.infer(request("m", 1))).version == 1
        (entry,) = server.index()
        assert entry.state == "READY"
        assert "last reload failed" in entry.reason


async def test_a_model_that_appears_in_a_second_repository_stays_as_it_is_and_says_so(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    backend = FakeBackend()
    backend.write(one, "m")
    two.mkdir()

    async with running([one, two], backend, model_control_mode="poll") as server:
        backend.write(two, "m")
        await look(server)
        assert (await server.infer(request("m", 1))).version == 1
        assert str(two) in server.index()[0].reason

        shutil.rmtree(two / "m")
        await look(server)
        assert server.index() == [IndexEntry("m", 1, "READY")]


async def test_a_repository_that_is_gone_for_a_while_takes_no_model_along(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "models"
    backend.write(root, "m")

    async with polling(root, backend) as server:
        root.rename(tmp_path / "away")
        with pytest.raises(NotFoundError, match="cannot be read"):
            await look(server)
        await jump(16)
        await until(lambda: "what is loaded stays loaded" in caplog.text)
        assert (await server.infer(request("m", 1))).version == 1
        assert server.index() == [IndexEntry("m", 1, "READY")]

        (tmp_path / "away").rename(root)
        await look(server)

    assert backend.events.count("load m 1") == 1


async def test_one_bad_look_does_not_end_the_looking(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with polling(tmp_path, backend) as server:
        with monkeypatch.context() as patched:

            async def stumble() -> None:
                raise RuntimeError("the disk hiccups")

            patched.setattr(server._models, "follow_disk", stumble)
            await jump(16)
            assert "the disk hiccups" in caplog.text
        backend.write(tmp_path, "new")
        await jump(16)
        await until(lambda: len(server.index(ready=True)) == 2)
