"""Stopping a server: requests in flight are answered in time, hanging models are given up, all is freed."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from naiad import Server
from naiad.backend import Batch, ModelContext, Placement
from naiad.errors import ShuttingDownError, UnavailableError
from naiad.frontend import Frontend
from naiad.hookspecs import hookimpl
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, running, write_model
from naiad_testing.loops import jump, turns, until
from naiad_testing.steered import Steered, SteeredModel


class Listening:
    """A frontend, and its own plugin, that remembers what happened to it."""

    def __init__(self, name: str = "test", start_error: Exception | None = None, stop_error: Exception | None = None):
        self.name = name
        self.events: list[str] = []
        self._start_error = start_error
        self._stop_error = stop_error

    @hookimpl
    def naiad_frontends(self) -> Sequence[Frontend]:
        return [self]

    async def start(self, server: Server) -> str:
        self.events.append(f"start, ready {server.ready().ready}, models {len(server.index(ready=True))}")
        if self._start_error is not None:
            raise self._start_error
        return "everywhere"

    async def stop(self, grace: float) -> None:
        self.events.append(f"stop within {grace:.0f}")
        if self._stop_error is not None:
            raise self._stop_error


async def test_an_idle_server_stops_at_once_and_frees_everything(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        assert await server.stop()

    assert backend.events[-2:] == ["close m_0", "close m 1"]
    for thread in threading.enumerate():
        if thread.name.startswith("naiad-m"):
            thread.join(10)
            assert not thread.is_alive(), thread


async def test_what_was_taken_in_is_answered_before_the_end(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", number))) for number in range(3)]
        await off_the_loop(backend.wait_until_held)
        stopping = asyncio.ensure_future(server.stop())
        await turns()
        assert not stopping.done()
        backend.release()
        assert await stopping
        answers = await asyncio.gather(*calls)

    assert [float(answer.outputs["OUTPUT"].array[0]) for answer in answers] == [0, 1, 2]


async def test_a_stopping_server_is_live_and_not_ready_and_takes_no_more_requests(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with running(tmp_path, backend) as server:
        backend.hold()
        call = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(backend.wait_until_held)
        stopping = asyncio.ensure_future(server.stop())
        await turns()
        assert server.live()
        assert server.ready().reasons == ("the server is STOPPING",)
        with pytest.raises(ShuttingDownError, match="the server is STOPPING and takes no inference requests"):
            server.submit(request("m", 1), print)
        backend.release()
        await asyncio.gather(call, stopping)
        with pytest.raises(ShuttingDownError, match="the server is STOPPED"):
            server.submit(request("m", 1), print)


async def test_a_model_that_hangs_is_given_up_after_the_timeout(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, backend, exit_timeout_secs=30.0) as server:
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", number))) for number in range(3)]
        await off_the_loop(backend.wait_until_held)
        stopping = asyncio.ensure_future(server.stop())
        await jump(31)
        await jump(31)

        assert not await stopping
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in errors] == [ShuttingDownError] * 3
        assert "Server is stopping" in str(errors[0])
        assert "model 'm' version 1 did not end in time and is given up" in caplog.text
        assert not await server.stop()
        backend.release()
        await until(lambda: "close m_0" in backend.events)
        await turns()

    assert "close m 1" not in backend.events


async def test_a_model_that_hangs_holds_up_no_other(tmp_path: Path, backend: FakeBackend) -> None:
    other = FakeBackend("other")
    other.write(tmp_path, "other")

    async with running(tmp_path, backend, other) as server:
        backend.hold()
        hanging = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(backend.wait_until_held)
        stopping = asyncio.ensure_future(server.stop())
        await jump(31)
        await until(lambda: "close other 1" in other.events)
        await jump(31)

        assert not await stopping
        await asyncio.gather(hanging, return_exceptions=True)
        backend.release()


async def test_a_generation_that_still_drains_is_given_up_too(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend, model_control_mode="explicit", load_model=("m",)) as server:
        backend.hold()
        hanging = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(backend.wait_until_held)
        await server.unload("m")
        stopping = asyncio.ensure_future(server.stop())
        await jump(31)
        await jump(31)

        assert not await stopping
        with pytest.raises(ShuttingDownError):
            await hanging
        backend.release()


async def test_a_close_that_hangs_is_given_up_too(tmp_path: Path) -> None:
    let_go = threading.Event()

    class Clinging(SteeredModel):
        def instantiate(self, placement: Placement) -> "Clinging":
            return self

        def execute(self, batch: Batch) -> dict[str, object]:
            return {}

        def close(self) -> None:
            let_go.wait(10)

    backend = Steered(load=lambda context: Clinging(backend))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        stopping = asyncio.ensure_future(server.stop())
        await turns(50)
        await jump(31)

        assert not await stopping
        let_go.set()


@pytest.mark.parametrize("error", [RuntimeError("stuck"), SystemExit("stuck")])
async def test_a_model_that_fails_to_close_harms_nothing_else(
    tmp_path: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Stuck(SteeredModel):
        def close(self) -> None:
            raise error

    def load(context: ModelContext) -> SteeredModel:
        return Stuck(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        assert await server.stop()

    assert "closing model 'm' version 1 failed" in caplog.text


async def test_everybody_who_stops_the_server_waits_for_the_same_end(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        backend.hold()
        call = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(backend.wait_until_held)
        first, second = asyncio.ensure_future(server.stop()), asyncio.ensure_future(server.stop())
        await turns()
        assert not second.done()
        first.cancel()
        await turns()
        backend.release()
        assert await second
        assert await server.stop()
        await call


async def test_a_server_stopped_while_it_starts_gives_its_loads_up(tmp_path: Path) -> None:
    going, gone = threading.Event(), threading.Event()

    def load(context: ModelContext) -> SteeredModel:
        going.set()
        assert gone.wait(10)
        return SteeredModel(backend)

    backend = Steered(load=load)
    frontend = Listening()
    write_model(tmp_path, "m")
    server = Server(model_repository=[tmp_path], plugins=[backend, frontend], options={"exit-on-error": False})

    starting = asyncio.ensure_future(server.start())
    await off_the_loop(lambda: going.wait(10) and None)
    assert await server.stop()
    with pytest.raises(ShuttingDownError, match="stopped while its models loaded"):
        await starting
    gone.set()

    assert frontend.events == ["start, ready False, models 0", "stop within 30"]
    assert not server.live()


async def test_a_server_stopped_while_a_frontend_starts_stops_that_one_too(tmp_path: Path) -> None:
    class Slow(Listening):
        async def start(self, server: Server) -> str:
            going.set()
            await gone.wait()
            return await super().start(server)

    going, gone, frontend = asyncio.Event(), asyncio.Event(), Slow()
    server = Server(model_repository=[tmp_path], plugins=[frontend])
    starting = asyncio.ensure_future(server.start())
    await going.wait()

    stopping = asyncio.ensure_future(server.stop())
    await turns()
    gone.set()

    assert await stopping
    with pytest.raises(ShuttingDownError):
        await starting
    assert frontend.events == ["start, ready False, models 0", "stop within 30"]


async def test_a_server_starts_only_once(tmp_path: Path) -> None:
    frontend = Listening()
    server = Server(model_repository=[tmp_path], plugins=[frontend])
    await server.start()
    with pytest.raises(UnavailableError, match="is READY already, and starts only once; make another one"):
        await server.start()
    await server.stop()

    with pytest.raises(UnavailableError, match="is STOPPED already"):
        await server.start()

    assert not server.live()
    assert frontend.events == ["start, ready False, models 0", "stop within 30"]


async def test_a_start_that_is_cancelled_stops_the_server(tmp_path: Path) -> None:
    going, gone = threading.Event(), threading.Event()

    def instantiate(placement: Placement) -> SteeredModel:
        going.set()
        assert gone.wait(10)
        return SteeredModel(backend)

    backend = Steered(instantiate=instantiate)
    write_model(tmp_path, "m")
    server = Server(model_repository=[tmp_path], plugins=[backend])

    starting = asyncio.ensure_future(server.start())
    await off_the_loop(lambda: going.wait(10) and None)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    gone.set()

    assert starting.cancelled()
    assert not server.live()


# Frontends


async def test_frontends_start_before_the_models_are_loaded_and_stop_before_them(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    frontend = Listening()
    caplog.set_level("INFO")

    async with running(tmp_path, backend, frontend, exit_timeout_secs=12.0):
        pass

    assert frontend.events == ["start, ready False, models 0", "stop within 12"]
    assert "live while the models load: test everywhere" in caplog.text
    assert "test frontend listens at everywhere" in caplog.text


async def test_a_frontend_that_cannot_start_stops_the_server_and_the_others(
    tmp_path: Path, backend: FakeBackend
) -> None:
    first, second = Listening("first"), Listening("second", UnavailableError("port 8000 is taken"))
    server = Server(model_repository=[tmp_path], plugins=[backend, first, second])

    with pytest.raises(UnavailableError, match="port 8000 is taken"):
        await server.start()

    assert first.events[-1] == "stop within 30"
    assert backend.events == []
    assert not server.live()


async def test_a_frontend_that_fails_to_stop_holds_up_nothing(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, backend, Listening(stop_error=RuntimeError("still talking"))) as server:
        assert await server.stop()

    assert "still talking" in caplog.text
    assert "close m 1" in backend.events


# The lame-duck time


class Connected(Listening):
    """A frontend that has a client until `left` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.client_gone = asyncio.Event()

    async def without_clients(self) -> None:
        await self.client_gone.wait()


async def test_while_clients_are_connected_a_stopping_server_answers_and_is_not_ready(
    tmp_path: Path, backend: FakeBackend
) -> None:
    frontend = Connected()

    async with running(tmp_path, backend, frontend) as server:
        assert not server.draining
        stopping = asyncio.ensure_future(server.stop(lame_duck=5.0))
        await turns()
        answer = await server.infer(request("m", 1))

        assert (server.live(), server.draining) == (True, True)
        assert server.ready().reasons == ("the server is DRAINING",)
        assert float(answer.outputs["OUTPUT"].array[0]) == 1
        assert frontend.events[1:] == []
        frontend.client_gone.set()
        assert await stopping


async def test_the_lame_duck_time_ends_though_clients_stay(tmp_path: Path, backend: FakeBackend) -> None:
    frontend = Connected()

    async with running(tmp_path, backend, frontend) as server:
        stopping = asyncio.ensure_future(server.stop(lame_duck=5.0))
        await jump(4)
        assert frontend.events[1:] == []
        await jump(2)

        assert await stopping
    assert len(frontend.events) == 2


async def test_the_lame_duck_time_takes_half_of_the_exit_timeout_at_most(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend, Connected(), exit_timeout_secs=2.0) as server:
        stopping = asyncio.ensure_future(server.stop(lame_duck=60.0))
        await jump(1.1)

        assert await stopping


async def test_without_clients_there_is_no_lame_duck_time(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend, Listening()) as server:
        assert await server.stop(lame_duck=3600.0)
