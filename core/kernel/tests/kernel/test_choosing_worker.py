"""Which kind of worker a model gets."""

import asyncio

import pytest

from naiad._kernel.choosing_worker import worker_for
from naiad._kernel.leading.leading_worker import LeadingNativeWorker, LeadingWorker
from naiad._kernel.leading.relay import Relay
from naiad._kernel.loop_worker import LoopWorker
from naiad._kernel.native_worker import NativeWorker
from naiad._kernel.worker import Worker
from naiad.backend import BackendTraits
from naiad_config import ModelConfig, ModelParameter, ModelTransactionPolicy

FRAMEWORKS = [("", Worker, LeadingWorker), ("onnxruntime", NativeWorker, LeadingNativeWorker)]


@pytest.fixture
def relay():
    loop = asyncio.new_event_loop()
    yield Relay(loop)
    loop.close()


def asking_for(place, **fields):
    return ModelConfig(name="m", parameters={"execute_on": ModelParameter(string_value=place)}, **fields)


@pytest.mark.parametrize(("framework", "kind", "leading"), FRAMEWORKS)
def test_where_the_event_loop_stays_on_its_thread_models_have_their_own(framework, kind, leading):
    assert worker_for(ModelConfig(name="m"), BackendTraits(name="b", framework=framework)) is kind


@pytest.mark.parametrize(("framework", "kind", "leading"), FRAMEWORKS)
def test_where_it_can_change_every_model_may_lead(relay, framework, kind, leading):
    make = worker_for(ModelConfig(name="m"), BackendTraits(name="b", framework=framework), relay)

    assert type(make("m_0", None, None, relay.loop, None, None)) is leading


@pytest.mark.parametrize(("framework", "kind", "leading"), FRAMEWORKS)
def test_whoever_asks_for_a_thread_has_it_for_nothing_else(relay, framework, kind, leading):
    assert worker_for(asking_for("thread"), BackendTraits(name="b", framework=framework), relay) is kind


def test_a_decoupled_model_that_waits_for_slow_readers_never_leads(relay):
    config = ModelConfig(name="m", model_transaction_policy=ModelTransactionPolicy(decoupled=True))

    assert worker_for(config, BackendTraits(name="b"), relay) is Worker


def test_the_event_loop_s_thread_is_the_same_for_all(relay):
    assert worker_for(asking_for("event_loop"), BackendTraits(name="b", framework="onnxruntime"), relay) is LoopWorker
