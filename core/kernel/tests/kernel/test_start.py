"""Start of a server: a model that fails to load ends it, one that is not ready yet does not."""

from pathlib import Path

import pytest

from naiad import Server
from naiad.errors import InvalidArgumentError, ModelNotReadyError, UnavailableError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running


async def test_an_instance_that_is_not_ready_yet_does_not_end_the_start(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    backend.not_ready = "still filling its cache"

    async with running(tmp_path, backend, exit_on_error=True) as server:
        readiness = server.ready()

    assert not readiness.ready
    assert "still filling its cache" in readiness.reasons[0]


async def test_a_model_that_does_not_load_ends_the_start_with_its_reason(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    backend.load_error = ValueError("weights are cursed")

    with pytest.raises(ModelNotReadyError, match="weights are cursed"):
        async with running(tmp_path, backend, exit_on_error=True):
            pass


def test_a_server_is_not_made_with_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="--backend-config"):
        Server(model_repository=[tmp_path], plugins=[], options={"backend-config": ("=nonsense",)})


async def test_a_server_that_never_started_takes_no_requests_and_can_be_stopped(tmp_path: Path) -> None:
    server = Server(model_repository=[tmp_path], plugins=[])

    with pytest.raises(UnavailableError, match="the server is NEW"):
        await server.infer(request("m", 1))
    assert await server.stop()
    assert not server.live()
