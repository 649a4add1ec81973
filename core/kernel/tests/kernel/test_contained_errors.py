"""Code of plugins and models that runs on the event loop may raise anything: the loop goes on, and every call ends."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import uvloop

import naiad_loop_handoff
from naiad import Server
from naiad.backend import MemoryUsage
from naiad.errors import InternalError
from naiad.foreign_errors import raise_interrupt
from naiad.scheduler import Decision, Drop, Ticket
from naiad.types import Response
from naiad_testing.in_loop import FLOATS, request, running, write_model
from naiad_testing.leading import lead, led_by
from naiad_testing.loops import turns, until
from naiad_testing.steered import Steered, SteeredInstance, SteeredModel

from .driven import DrivenQueue
from .driven_streams import DrivenStreams, number
from .schedulers import Recording

RAISED = [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, ArithmeticError]

pytestmark = pytest.mark.parametrize("kind", RAISED)


@pytest.fixture(autouse=True)
def as_in_naiad_serve() -> Iterator[None]:
    """SIGINT is handled, as by `naiad serve`, so that a KeyboardInterrupt can only be a plugin's."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    yield
    signal.signal(signal.SIGINT, before)


class Raising(Recording):
    """A scheduler that raises in one of its methods, once."""

    kind: type[BaseException] = ArithmeticError
    method = ""

    def arrive(self, ticket: Ticket) -> Drop | None:
        self._perhaps("arrive")
        return super().arrive(ticket)

    def settle(self, tickets: Sequence[int], now: float) -> None:
        self._perhaps("settle")
        super().settle(tickets, now)

    def lost(self, instance: int, now: float) -> None:
        self._perhaps("lost")

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self._perhaps("decide")
        return super().decide(now, idle)

    def _perhaps(self, method: str) -> None:
        if Raising.method == method:
            Raising.method = ""
            raise Raising.kind("a plugin left")


@pytest.mark.parametrize("method", ["arrive", "settle", "lost", "decide"])
async def test_a_scheduler_that_raises_fails_what_waits_and_nothing_else(
    kind: type[BaseException], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven = DrivenQueue(Raising)
    driven.submit("executing")
    await turns()
    driven.submit("waiting")
    monkeypatch.setattr(Raising, "kind", kind)
    monkeypatch.setattr(Raising, "method", method)

    if method == "arrive":
        with pytest.raises(InternalError, match=kind.__name__):
            driven.submit("new")
        driven.finish()
    elif method == "lost":
        driven.die(InternalError("died"))
        driven.queue.free(0)
    else:
        driven.finish()
    await turns()

    assert kind.__name__ in str(driven.error("waiting"))
    driven.submit("later")
    assert await driven.executing() == [["later"]]


async def test_a_scheduler_that_cannot_be_made_anew_goes_on(kind: type[BaseException]) -> None:
    instances: list[Raising] = []

    def make() -> Raising:
        if instances:
            raise kind("no further one")
        instances.append(Raising())
        return instances[0]

    driven = DrivenQueue(make)
    Raising.kind, Raising.method = kind, "arrive"
    with pytest.raises(InternalError):
        driven.submit("refused")

    driven.submit("later")

    assert await driven.executing() == [["later"]]


async def test_a_caller_who_raises_on_delivery_keeps_nothing_from_the_others(kind: type[BaseException]) -> None:
    driven = DrivenQueue()
    call = driven.submit("raises")

    def raise_it(outcome: object) -> None:
        raise kind("the caller left")

    call.deliver = raise_it
    await turns()
    driven.submit("next")
    driven.finish()

    assert await driven.executing() == [["next"]]


def raise_in_ready(server: Server) -> None:
    assert not server.ready().ready


def raise_in_memory_usage(server: Server) -> None:
    assert server.statistics("rude")[0].memory_usage == ()


def raise_on_delivery(server: Server) -> None:
    server.submit(request("m", 1.0), lambda outcome: Rude.raise_it())


class Rude(SteeredInstance):
    """An instance whose code for the event loop raises."""

    kind: type[BaseException] = ArithmeticError

    @classmethod
    def raise_it(cls) -> Any:
        raise cls.kind("a model left")

    def ready(self) -> str:
        return str(self.raise_it())


class RudeModel(SteeredModel):
    def memory_usage(self) -> Sequence[MemoryUsage]:
        usage: Sequence[MemoryUsage] = Rude.raise_it()
        return usage


def rude_backend(root: Path) -> Steered:
    rude = Steered("rude", load=lambda context: RudeModel(rude), instantiate=lambda placement: Rude(rude))
    write_model(root, "rude", backend="rude")
    write_model(root, "m")
    return rude


TRIGGERS = [raise_in_ready, raise_in_memory_usage, raise_on_delivery]


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_leading_thread_survives_what_a_model_raises(
    tmp_path: Path,
    kind: type[BaseException],
    trigger: Callable[[Server], None],
    loop_factory: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(server: Server) -> None:
        await led_by(server, "m")
        trigger(server)
        for value in range(10):
            response = await server.infer(request("m", value))
            assert response.outputs["OUTPUT"].array.tolist() == [value]

    monkeypatch.setattr(Rude, "kind", kind)
    lead(tmp_path, body, naiad_loop_handoff, rude_backend(tmp_path), Steered(), loop_factory=loop_factory)


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_the_loop_of_a_program_survives_what_a_model_raises(
    tmp_path: Path, kind: type[BaseException], trigger: Callable[[Server], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rude, "kind", kind)
    async with running(tmp_path, rude_backend(tmp_path), Steered()) as server:
        trigger(server)
        assert isinstance(await server.infer(request("m", 1.0)), Response)


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("leading", [True, False])
def test_a_callback_that_raises_neither_ends_nor_freezes_the_loop(
    tmp_path: Path, kind: type[BaseException], loop_factory: Any, leading: bool
) -> None:
    def leave() -> None:
        raise kind("a callback left")

    async def body(server: Server) -> None:
        if leading:
            await led_by(server, "m")
        loop = asyncio.get_running_loop()
        after: list[int] = []
        loop.call_soon(leave)
        loop.call_soon(after.append, 1)
        await until(lambda: after)
        assert isinstance(await server.infer(request("m", 1.0)), Response)

    write_model(tmp_path, "m")
    lead(tmp_path, body, naiad_loop_handoff, Steered(), loop_factory=loop_factory)


async def test_a_model_that_executes_on_the_loop_may_raise_in_each_of_its_steps(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    class Steps(SteeredInstance):
        def close(self) -> None:
            raise kind("close left")

    def execute(batch: Any) -> Any:
        raise kind("execute left")

    backend = Steered(execute=execute, instantiate=lambda placement: Steps(backend))
    write_model(tmp_path, "m", FLOATS + 'parameters { key: "execute_on" value { string_value: "event_loop" } }')

    async with running(tmp_path, backend, naiad_loop_handoff) as server:
        with pytest.raises(InternalError, match="execute left"):
            await server.infer(request("m", 1.0))


async def test_a_listener_of_cancellations_may_raise(kind: type[BaseException], caplog: Any) -> None:
    driven = DrivenQueue()
    call = driven.submit("leaves")
    await turns()

    def raise_it() -> None:
        raise kind("the listener left")

    call.request.on_cancelled = raise_it
    call.cancel()
    driven.finish()

    assert "failed to take note that a request was cancelled" in caplog.text
    driven.submit("next")
    assert await driven.executing() == [["next"]]


def test_only_the_user_s_own_interrupt_passes(kind: type[BaseException]) -> None:
    error = kind("from somewhere")
    raise_interrupt(error)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    if kind is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            raise_interrupt(error)
    else:
        raise_interrupt(error)


async def test_a_callback_on_the_future_of_a_sender_may_raise(kind: type[BaseException]) -> None:
    def leave(future: object) -> None:
        raise kind("the callback left")

    driven = DrivenStreams()
    driven.submit("slow").pause()
    await turns()
    sender = driven.sender("slow")
    first, second = sender.post(number(1)), sender.post(number(2))
    assert first is not None
    assert second is not None
    first.add_done_callback(leave)

    driven.queue._executing[1].resume()

    assert first.done()
    assert second.done()
    sender.post(None, final=True)
    await turns()


@pytest.mark.parametrize("member", ["concurrency", "input_devices", "ready", "sequence_ended"])
async def test_a_member_that_raises_fails_the_load_of_its_model_alone(
    tmp_path: Path, kind: type[BaseException], member: str
) -> None:
    class Broken(SteeredInstance):
        def __init__(self, backend: Steered) -> None:
            self._backend = backend

        def __getattribute__(self, name: str) -> Any:
            if name == member:
                raise kind("the member left")
            return super().__getattribute__(name)

    broken = Steered("broken", instantiate=lambda placement: Broken(broken))
    write_model(tmp_path, "bad", backend="broken")
    write_model(tmp_path, "m")

    async with running(tmp_path, broken, Steered()) as server:
        assert isinstance(await server.infer(request("m", 1.0)), Response)
        states = {entry.name: entry.state for entry in server.index()}

    assert states == {"bad": "UNAVAILABLE", "m": "READY"}
