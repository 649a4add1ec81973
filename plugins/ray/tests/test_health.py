"""Why a replica is replaced, by the health of its server, without Ray."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from naiad_ray.health import Health
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import running, write_model

LOST = ["model 'm' version 1 is not ready any more: instance 'm_0' is not ready: the GPU is lost"]


async def until(condition: Callable[[], bool]) -> None:
    """Return when it holds: on a busy machine a model's own check answers late, and counts at the next question."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - no event says that the answer of a model has changed
            await asyncio.sleep(0.01)


def test_a_model_that_is_not_ready_any_more_is_a_reason_until_it_is_ready_again(tmp_path: Path) -> None:
    write_model(tmp_path, "m", backend="fake")
    backend = FakeBackend()

    async def check() -> list[str]:
        async with running(tmp_path, backend) as server:
            health = Health(server)
            await until(lambda: server.model_ready("m").ready)
            before = health.reasons()
            backend.not_ready = "the GPU is lost"
            await until(lambda: health.reasons() == LOST)
            backend.not_ready = ""
            await until(lambda: health.reasons() == [])
            return before

    assert asyncio.run(check()) == []


def test_a_model_that_has_not_been_ready_yet_is_no_reason(tmp_path: Path) -> None:
    write_model(tmp_path, "m", backend="fake")
    write_model(tmp_path, "broken", backend="no-such-backend")
    backend = FakeBackend()
    backend.not_ready = "still filling its cache"

    async def check() -> list[str]:
        async with running(tmp_path, backend) as server:
            return Health(server).reasons()

    assert asyncio.run(check()) == []


def test_a_model_that_was_unloaded_is_no_reason(tmp_path: Path) -> None:
    write_model(tmp_path, "m", backend="fake")

    async def check() -> list[list[str]]:
        async with running(tmp_path, FakeBackend(), model_control_mode="explicit") as server:
            health = Health(server)
            await server.load("m")
            loaded = health.reasons()
            await server.unload("m")
            return [loaded, health.reasons()]

    assert asyncio.run(check()) == [[], []]


def test_a_server_that_has_stopped_is_a_reason(tmp_path: Path) -> None:
    write_model(tmp_path, "m", backend="fake")

    async def check() -> list[str]:
        async with running(tmp_path, FakeBackend()) as server:
            health = Health(server)
        return health.reasons()

    assert asyncio.run(check()) == ["its server has stopped"]
