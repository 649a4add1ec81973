"""Which worker a model gets where the event loop is handed from thread to thread."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import naiad_loop_handoff
from naiad.backend import BackendTraits
from naiad.extend import LoopRunner, WorkerKind
from naiad_config import ModelConfig, ModelTransactionPolicy
from naiad_loop_handoff.event_loop_worker import EventLoopWorker
from naiad_loop_handoff.handoff import LoopHandoff
from naiad_loop_handoff.kinds import EventLoopKind, HandoffKind
from naiad_loop_handoff.workers import HandoffWorker, NativeHandoffWorker, NativeWorker
from naiad_testing.workers import check_workers

PYTHON, NATIVE = BackendTraits(name="b"), BackendTraits(name="b", framework="onnxruntime")
DECOUPLED = ModelConfig(name="m", model_transaction_policy=ModelTransactionPolicy(decoupled=True))
PLAIN = ModelConfig(name="m")


@pytest.fixture
def handoff() -> Iterator[LoopHandoff]:
    loop = asyncio.new_event_loop()
    yield LoopHandoff(loop)
    loop.close()


def worker(kind: HandoffKind, handoff: LoopHandoff, config: ModelConfig, traits: BackendTraits, execute_on: str) -> Any:
    """The type of the worker that a model gets, None where the kind leaves it to others."""
    make = kind.worker_for(config, traits, execute_on)
    host: Any = SimpleNamespace(loop=handoff.loop)
    placement: Any = SimpleNamespace(name="m_0")
    return None if make is None else type(make(placement, host))


def test_every_model_that_asks_for_nothing_may_lead(handoff: LoopHandoff) -> None:
    kind = HandoffKind(handoff)

    assert worker(kind, handoff, PLAIN, PYTHON, "") is HandoffWorker
    assert worker(kind, handoff, PLAIN, NATIVE, "") is NativeHandoffWorker


def test_a_thread_that_a_model_asks_for_runs_nothing_else(handoff: LoopHandoff) -> None:
    kind = HandoffKind(handoff)

    assert worker(kind, handoff, PLAIN, PYTHON, "thread") is None
    assert worker(kind, handoff, PLAIN, NATIVE, "thread") is NativeWorker


def test_a_decoupled_model_that_waits_for_slow_readers_never_leads(handoff: LoopHandoff) -> None:
    kind = HandoffKind(handoff)

    assert worker(kind, handoff, DECOUPLED, PYTHON, "") is None
    assert worker(kind, handoff, DECOUPLED, NATIVE, "") is NativeWorker


def test_no_model_leads_where_that_is_switched_off(handoff: LoopHandoff) -> None:
    kind = HandoffKind(handoff, leads=False)

    assert worker(kind, handoff, PLAIN, PYTHON, "") is None
    assert worker(kind, handoff, PLAIN, NATIVE, "") is NativeWorker


def test_a_model_that_asks_for_the_event_loop_never_leads(handoff: LoopHandoff) -> None:
    kind = HandoffKind(handoff)

    assert worker(kind, handoff, PLAIN, PYTHON, "event_loop") is None
    assert worker(kind, handoff, PLAIN, NATIVE, "event_loop") is None


@pytest.mark.parametrize("traits", [PYTHON, NATIVE])
def test_a_model_that_asks_for_the_event_loop_executes_there(traits: BackendTraits) -> None:
    assert EventLoopKind().worker_for(PLAIN, traits, "event_loop") is EventLoopWorker
    assert EventLoopKind().worker_for(PLAIN, traits, "") is None


def test_no_worker_leads_an_event_loop_that_stays(handoff: LoopHandoff) -> None:
    settings: Any = {"loop-handoff": True}

    assert [kind.name for kind in naiad_loop_handoff.naiad_workers(settings, None)] == ["event_loop"]
    assert isinstance(naiad_loop_handoff.naiad_workers(settings, handoff)[0], WorkerKind)


def test_its_runner_keeps_the_contract(handoff: LoopHandoff) -> None:
    (runner,) = naiad_loop_handoff.naiad_runners(handoff.loop)

    assert isinstance(runner, LoopRunner)


def test_its_workers_keep_the_contract_while_they_lead(handoff: LoopHandoff) -> None:
    handoff.run(check_workers(HandoffKind(handoff)))
