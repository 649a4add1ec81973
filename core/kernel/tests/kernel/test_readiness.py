"""Whether the server and its models are ready, truthfully and with reasons."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from naiad import Server, __version__
from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, ModelNotReadyError, NotFoundError
from naiad.reports import Readiness
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, running, write_model
from naiad_testing.loops import jump, turns, until
from naiad_testing.steered import Steered, SteeredModel


async def test_a_server_is_neither_live_nor_ready_before_it_starts_and_after_it_stops(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    server = Server(model_repository=[tmp_path], plugins=[backend])
    seen = [(server.live(), server.ready().ready)]

    async with server:
        seen.append((server.live(), server.ready().ready))
    seen.append((server.live(), server.ready().ready))

    assert seen == [(False, False), (True, True), (False, False)]


async def test_a_server_is_live_and_not_ready_while_its_models_load(tmp_path: Path) -> None:
    going, gone = threading.Event(), threading.Event()

    def load(context: ModelContext) -> Any:
        going.set()
        assert gone.wait(10)
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")
    server = Server(model_repository=[tmp_path], plugins=[backend])

    starting = asyncio.ensure_future(server.start())
    await off_the_loop(lambda: going.wait(10) and None)
    assert server.live()
    assert server.ready() == Readiness(False, ("the server is STARTING, loading models: 0 of 1",), starting=True)
    with pytest.raises(ModelNotReadyError, match="'m' has no available versions: LOADING"):
        server.model_ready("m")
    gone.set()
    await starting
    assert server.ready() == Readiness(True)
    await server.stop()


async def test_while_the_repositories_are_read_no_models_are_counted(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    server = Server(model_repository=[tmp_path], plugins=[backend])

    starting = asyncio.ensure_future(server.start())
    await turns(1)  # to the thread that reads them
    readiness = server.ready()
    await starting
    await server.stop()

    assert readiness == Readiness(False, ("the server is STARTING, no model is known yet",), starting=True)


class Gated:
    """A backend, whose model `slow` loads when the test lets it: `going` says that it has begun."""

    def __init__(self) -> None:
        self.going, self.let_go = threading.Event(), threading.Event()
        self.plugin = Steered(load=self._load)

    def _load(self, context: ModelContext) -> Any:
        if context.config.name == "slow":
            self.going.set()
            assert self.let_go.wait(10)
        return SteeredModel(self.plugin)


async def test_while_one_model_loads_the_others_answer_and_requests_to_it_are_refused(
    tmp_path: Path,
) -> None:
    gated = Gated()
    for name in ("quick", "slow"):
        write_model(tmp_path, name)
    server = Server(model_repository=[tmp_path], plugins=[gated.plugin])

    starting = asyncio.ensure_future(server.start())
    with pytest.raises(ModelNotReadyError, match="'quick', the model repositories are not read yet"):
        await asyncio.gather(starting, server.infer(request("quick", 1)))
    await off_the_loop(lambda: gated.going.wait(10) and None)
    await until(lambda: server.index(ready=True))
    progress, answer = server.ready().reasons, await server.infer(request("quick", 7))
    with pytest.raises(ModelNotReadyError, match=r"'slow' .*: LOADING"):
        await server.infer(request("slow", 1))
    with pytest.raises(NotFoundError):
        await server.infer(request("ghost", 1))
    gated.let_go.set()
    await starting
    await server.infer(request("slow", 1))
    await server.stop()

    assert progress == ("the server is STARTING, loading models: 1 of 2",)
    assert answer.outputs["OUTPUT"].array.tolist() == [7]


async def test_a_load_that_a_client_asks_for_meanwhile_and_that_fails_does_not_end_the_start(tmp_path: Path) -> None:
    gated = Gated()
    write_model(tmp_path, "slow")
    write_model(tmp_path, "other", config="no such key")
    options = {"model-control-mode": "explicit", "load-model": ("slow",)}
    server = Server(model_repository=[tmp_path], plugins=[gated.plugin], options=options)

    starting = asyncio.ensure_future(server.start())
    await off_the_loop(lambda: gated.going.wait(10) and None)
    with pytest.raises(InvalidArgumentError, match="failed to load 'other'"):
        await server.load("other")
    gated.let_go.set()
    await starting

    assert server.model_ready("slow").ready
    await server.stop()


async def test_a_server_that_will_never_have_a_model_is_not_ready(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        assert server.live()
        assert server.ready() == Readiness(
            False, (f"there is no model to serve in the model repositories ({tmp_path})",)
        )


@pytest.mark.parametrize("mode", ["poll", "explicit"])
async def test_a_server_whose_models_come_later_is_ready_without_one(tmp_path: Path, mode: str) -> None:
    async with running(tmp_path, model_control_mode=mode) as server:
        assert server.ready() == Readiness(True)


@pytest.mark.parametrize("mode", ["none", "poll", "explicit"])
async def test_a_server_whose_repository_cannot_be_read_is_live_and_not_ready_until_it_can(
    tmp_path: Path, mode: str
) -> None:
    repository = tmp_path / "models"
    backend = FakeBackend()

    async with running(repository, backend, model_control_mode=mode) as server:
        before = (server.live(), server.ready())
        backend.write(repository, "m")
        await server.fresh_index()
        if mode == "explicit":
            await server.load("m")
        elif mode == "poll":
            await jump(20)
            await until(lambda: server.index(ready=True))
        after = server.ready().ready

    reason = f"the model repositories ({repository}) could not be read yet; the log says why"
    assert before == (True, Readiness(False, (reason,)))
    assert after == (mode != "none")


async def test_a_server_without_a_repository_says_so() -> None:
    async with running([]) as server:
        (reason,) = server.ready().reasons

    assert reason.endswith("(none is given)")


async def test_every_model_that_does_not_serve_has_a_reason(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "a")
    for name in ("b", "c"):
        (tmp_path / name).mkdir()

    async with running(tmp_path, backend) as server:
        ready = server.ready()

    assert not ready.ready
    assert [reason.split(" has no version that serves: ")[0] for reason in ready.reasons] == ["model 'b'", "model 'c'"]


async def test_without_strictness_the_state_of_the_server_alone_counts(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()

    async with running(tmp_path, strict_readiness=False) as server:
        assert server.ready() == Readiness(True)
        with pytest.raises(ModelNotReadyError):
            server.model_ready("broken")


async def test_a_model_says_which_version_is_not_there(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", versions=(1, 2))

    async with running(tmp_path, backend) as server:
        assert server.model_ready("m", 2).ready
        with pytest.raises(NotFoundError, match="version 1 is not found"):
            server.model_ready("m", 1)
        with pytest.raises(NotFoundError, match="unknown model: 'ghost'"):
            server.model_ready("ghost")


async def test_a_model_is_ready_with_one_instance_that_is(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "instance_group { count: 2 }")

    async with running(tmp_path, backend) as server:
        assert server.model_ready("m") == Readiness(True)
        backend.not_ready = "cold"
        assert server.model_ready("m").reasons == tuple(
            f"instance 'm_0_{number}' is not ready: cold" for number in range(2)
        )


async def test_a_failing_model_ends_the_start_where_the_option_says_so(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "good")
    (tmp_path / "broken").mkdir()
    server = Server(model_repository=[tmp_path], plugins=[backend], options={"exit-on-error": True})

    with pytest.raises(ModelNotReadyError) as caught:
        await server.start()

    first, reason = str(caught.value).splitlines()
    assert first == "failed to load all models; fix broken, or add --exit-on-error=false"
    assert reason.startswith("- model 'broken' has no version that serves: ")
    assert caught.value.logged
    assert not server.live()
    assert "close good 1" in backend.events


async def test_a_server_tells_who_it_is() -> None:
    async with running([], id="left") as server:
        metadata = server.metadata()

    assert (metadata.name, metadata.version) == ("left", __version__)
    assert {"statistics", "model_repository", "binary_tensor_data"} <= set(metadata.extensions)
    await turns()
