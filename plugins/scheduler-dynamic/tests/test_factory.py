"""How the plugin is found and what it makes of a configuration."""

import pytest

import naiad_scheduler_dynamic
from naiad.errors import InvalidArgumentError
from naiad.scheduler import SchedulerFactory, Ticket
from naiad_config import ModelConfig, ModelDynamicBatching, ModelParameter
from naiad_scheduler_dynamic.factory import DynamicBatching


def test_the_plugin_offers_the_dynamic_batcher():
    (factory,) = naiad_scheduler_dynamic.naiad_schedulers()

    assert isinstance(factory, SchedulerFactory)
    assert (factory.name, factory.choice) == ("dynamic", "dynamic_batching")


@pytest.mark.parametrize("preserve", [False, True])
def test_preserve_ordering_is_passed_to_the_kernel(batcher, preserve):
    assert batcher(preserve_ordering=preserve).preserves_ordering is preserve


def test_a_model_that_asks_for_it_by_name_gets_the_default_settings():
    config = ModelConfig(
        name="model", max_batch_size=4, parameters={"scheduler": ModelParameter(string_value="dynamic")}
    )
    scheduler = DynamicBatching().create(config, instances=1)
    for number in range(1, 7):
        scheduler.arrive(Ticket(number, 0.0))

    decision = scheduler.decide(0.0, (0,))

    assert [(sent.tickets, sent.reason) for sent in decision.dispatches] == [((1, 2, 3, 4), "full")]


@pytest.mark.parametrize("size", [0, -1, 9])
def test_a_preferred_size_that_no_batch_can_have_is_refused(size):
    batching = ModelDynamicBatching(preferred_batch_size=(4, size))
    config = ModelConfig(name="digits", max_batch_size=8, dynamic_batching=batching)

    with pytest.raises(InvalidArgumentError) as refusal:
        DynamicBatching().create(config, instances=1)

    assert str(size) in str(refusal.value)
    assert "digits" in str(refusal.value)
