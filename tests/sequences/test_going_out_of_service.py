"""Sequences that are under way when their model is reloaded or unloaded, or when the server stops."""

import asyncio
from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError, ModelNotReadyError, ShuttingDownError
from naiad_testing.loops import until

from .serving import CONFIG, PATIENT, Listening, ask, serving

EXPLICIT = {"model_control_mode": "explicit", "load_model": ("*",)}


async def test_a_sequence_goes_on_in_the_version_that_it_started_in(tmp_path: Path) -> None:
    backend = Listening()
    async with serving(tmp_path, backend, **EXPLICIT) as server:
        await ask(server, 1, who="old", flags="start")
        backend.write(tmp_path, "m", CONFIG % (4, PATIENT, "metric_tags { key: 'a' value: 'b' }"))
        await server.load("m")

        assert await ask(server, 10, who="new", flags="start") == 10
        assert await ask(server, 2, who="old") == 3
        with pytest.raises(InvalidArgumentError, match="START flag"):
            await ask(server, 1, who="unknown")
        assert await ask(server, 3, who="old", flags="end") == 6
        assert await ask(server, 1, who="new", flags="end") == 11

    assert sorted(backend.heard) == [("new", "end"), ("old", "end")]  # by two instances, each on its own thread


async def test_a_sequence_that_starts_anew_goes_to_the_new_version_and_stays_there(tmp_path: Path) -> None:
    backend = Listening()
    async with serving(tmp_path, backend, **EXPLICIT) as server:
        await ask(server, 1, flags="start")
        backend.write(tmp_path, "m", CONFIG % (4, PATIENT, "metric_tags { key: 'a' value: 'b' }"))
        await server.load("m")

        assert await ask(server, 10, flags="start") == 10
        assert await ask(server, 10, flags="end") == 20

    assert sorted(backend.heard) == [(7, "end"), (7, "unload")]


async def test_a_model_that_is_unloaded_starts_nothing_and_ends_when_its_sequences_have(tmp_path: Path) -> None:
    backend = Listening()
    async with serving(tmp_path, backend, **EXPLICIT) as server:
        await ask(server, 1, who=1, flags="start")
        await ask(server, 1, who=2, flags="start")
        await server.unload("m")

        with pytest.raises(ModelNotReadyError):
            await ask(server, 1, who=3, flags="start")
        assert (await ask(server, 2, who=1), await ask(server, 3, who=2)) == (3, 4)
        assert [entry.state for entry in server.index()] == ["UNLOADING"]
        await ask(server, 1, who=1, flags="end")
        assert [entry.state for entry in server.index()] == ["UNLOADING"]
        await ask(server, 1, who=2, flags="end")
        await until(lambda: server.index()[0].state != "UNLOADING")
        with pytest.raises(ModelNotReadyError):
            await ask(server, 1, who=2)

    assert "close m 1" in backend.events


async def test_a_model_that_is_unloaded_does_not_wait_for_a_sequence_that_has_fallen_silent(tmp_path: Path) -> None:
    backend = Listening()
    async with serving(tmp_path, backend, "max_sequence_idle_microseconds: 20000", **EXPLICIT) as server:
        await ask(server, 1, flags="start")
        await server.unload("m")

        await until(lambda: server.index()[0].state != "UNLOADING")

    assert backend.heard == [(7, "idle")]


async def test_a_server_that_stops_lets_sequences_end_and_starts_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    backend = Listening()
    async with serving(tmp_path, backend) as server:
        await ask(server, 1, flags="start")
        stopping = asyncio.ensure_future(server.stop())
        await until(lambda: "goes when its sequences have ended" in caplog.text)

        with pytest.raises(ShuttingDownError):
            await ask(server, 1, who=8, flags="start")
        assert await ask(server, 2) == 3
        assert not stopping.done()
        assert await ask(server, 3, flags="end") == 6
        assert await stopping

    assert backend.heard == [(7, "end")]
    assert "model 'm' version 1 goes when its sequences have ended or fallen silent; under way: 1" in caplog.text
    assert "gives up" not in caplog.text


async def test_a_server_that_stops_gives_sequences_up_when_its_time_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Listening()
    async with serving(tmp_path, backend, exit_timeout_secs=0) as server:
        await ask(server, 1, flags="start")

        assert await server.stop()

    assert backend.heard == [(7, "unload")]
    assert "model 'm' version 1 gives up its sequences, which have not ended in time: 1" in caplog.text
