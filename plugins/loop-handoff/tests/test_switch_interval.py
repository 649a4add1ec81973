"""How soon a thread that waits for the interpreter asks for it, while models compute outside of Python."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import naiad_loop_handoff
from naiad import Server, hookimpl
from naiad.backend import Backend, BackendTraits, ModelContext, Placement
from naiad_config import ModelConfig
from naiad_loop_handoff.handoff import LoopHandoff
from naiad_loop_handoff.switch_interval import SHORT, SwitchInterval
from naiad_loop_handoff.workers import NativeWorker


@pytest.fixture
def normal() -> Iterator[float]:
    """What the interval of this process is outside of this test."""
    interval = sys.getswitchinterval()
    yield interval
    sys.setswitchinterval(interval)


@pytest.fixture
def handoff() -> Iterator[LoopHandoff]:
    """Of a server that has started."""
    loop = asyncio.new_event_loop()
    handoff = LoopHandoff(loop)
    handoff.started()
    yield handoff
    loop.close()


@pytest.fixture
def worker(handoff: LoopHandoff) -> "NativeWorker[Any]":
    host: Any = SimpleNamespace(loop=handoff.loop, done=lambda item: None, died=lambda reason, lost: None)
    placement: Any = SimpleNamespace(name="m_0")
    return NativeWorker(handoff, placement, host)


class Item:
    """A batch that is never executed."""

    batch: Any = None
    started_ns = done_ns = 0


def test_it_is_short_while_it_is_acquired_and_normal_afterwards(normal: float) -> None:
    interval = SwitchInterval()
    interval.allowed = True

    seen = []
    for step in (interval.acquire, interval.acquire, interval.release, interval.release):
        step()
        seen.append(sys.getswitchinterval())

    assert seen == pytest.approx([SHORT, SHORT, SHORT, normal])


def test_a_server_that_starts_leaves_it_as_it_is(normal: float) -> None:
    interval = SwitchInterval()

    interval.acquire()

    assert sys.getswitchinterval() == normal


def test_batches_hold_it_until_they_are_back(normal: float, worker: "NativeWorker[Any]") -> None:
    first, second = Item(), Item()

    seen = []
    for step, batch in ((worker.execute, first), (worker.execute, second), (worker.arrived, first)):
        step(batch)
        seen.append(sys.getswitchinterval())
    worker.arrived(second)
    worker.arrived(second)  # a second time

    assert seen == pytest.approx([SHORT] * 3)
    assert sys.getswitchinterval() == normal


def test_batches_that_die_with_their_worker_hold_it_no_more(normal: float, worker: "NativeWorker[Any]") -> None:
    worker.execute(Item())
    worker.execute(Item())

    worker.fail_in_flight("it died")

    assert sys.getswitchinterval() == normal


class Noting:
    """A backend whose models note the switch interval in each step of a load."""

    def __init__(self) -> None:
        self.traits = BackendTraits(name="noting")
        self.seen: dict[str, float] = {}

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        return [self]

    def complete(self, context: ModelContext) -> ModelConfig:
        self.seen["complete"] = sys.getswitchinterval()
        return context.config

    def load(self, context: ModelContext) -> "Noting":
        self.seen["load"] = sys.getswitchinterval()
        return self

    def instantiate(self, placement: Placement) -> "Noting":
        self.seen["instantiate"] = sys.getswitchinterval()
        return self

    def execute(self, batch: object) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        return None


def test_a_load_holds_it_while_it_lasts(tmp_path: Path, normal: float) -> None:
    backend = Noting()
    (tmp_path / "m" / "1").mkdir(parents=True)
    tensors = (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }'
    )
    (tmp_path / "m" / "config.pbtxt").write_text(f'backend: "noting" {tensors}')

    async def serve(handoff: LoopHandoff) -> None:
        options = {"model-control-mode": "explicit"}
        plugins = [backend, naiad_loop_handoff]
        async with Server(model_repository=[tmp_path], plugins=plugins, options=options, runner=handoff) as server:
            handoff.started()
            await server.load("m")
            assert sys.getswitchinterval() == normal

    with asyncio.Runner() as runner:
        handoff = LoopHandoff(runner.get_loop())
        handoff.run(serve(handoff))

    assert backend.seen == {step: pytest.approx(SHORT) for step in ("complete", "load", "instantiate")}
