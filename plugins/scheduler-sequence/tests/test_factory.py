"""How the plugin is found and what it makes of a configuration."""

import pytest

import naiad_scheduler_sequence
from naiad import Server
from naiad.errors import InvalidArgumentError
from naiad.scheduler import SchedulerFactory, Ticket
from naiad_config import ModelConfig, ModelParameter, ModelSequenceBatching, StrategyDirect, StrategyOldest
from naiad_kit.sequences import Row
from naiad_scheduler_sequence.factory import SequenceBatching


def test_the_plugin_offers_the_sequence_batcher():
    (factory,) = naiad_scheduler_sequence.naiad_schedulers()

    assert isinstance(factory, SchedulerFactory)
    assert (factory.name, factory.choice) == ("sequence", "sequence_batching")


def test_sequences_are_a_protocol_extension_of_a_server_with_the_plugin(tmp_path):
    server = Server(model_repository=[tmp_path], plugins=[naiad_scheduler_sequence])

    assert "sequence" in server.metadata().extensions


def test_two_sequences_share_a_batch_each_in_its_row():
    config = ModelConfig(
        name="model", max_batch_size=2, sequence_batching=ModelSequenceBatching(direct=StrategyDirect())
    )
    scheduler = SequenceBatching().create(config, instances=1)
    scheduler.arrive(Ticket(1, 0.0, sequence_id=7, sequence_start=True))
    scheduler.arrive(Ticket(2, 0.0, sequence_id="b", sequence_start=True, sequence_end=True))

    (dispatch,) = scheduler.decide(0.0, (0,)).dispatches

    assert dispatch.rows == (Row(1, 1, start=True), Row(2, 2, start=True, end=True))
    assert (dispatch.tickets, dispatch.reason) == ((1, 2), "full")


def test_direct_is_the_strategy_where_none_is_said():
    config = ModelConfig(name="model", max_batch_size=3, sequence_batching=ModelSequenceBatching())
    scheduler = SequenceBatching().create(config, instances=1)
    for number in (1, 2, 3):
        scheduler.arrive(Ticket(number, 0.0, sequence_id=number, sequence_start=True))
    scheduler.decide(0.0, (0,))
    scheduler.arrive(Ticket(4, 1.0, sequence_id=2))

    (dispatch,) = scheduler.decide(1.0, (0,)).dispatches

    assert dispatch.rows == (Row(0, 1), Row(4, 2))


def test_a_model_that_asks_for_it_by_name_gets_the_default_settings():
    config = ModelConfig(name="model", parameters={"scheduler": ModelParameter(string_value="sequence")})
    scheduler = SequenceBatching().create(config, instances=1)
    scheduler.arrive(Ticket(1, 0.0, sequence_id=7, sequence_start=True))
    scheduler.decide(0.0, (0,))
    scheduler.settle((1,), 0.0)

    wake_at = scheduler.decide(0.0, (0,)).wake_at

    assert wake_at == 1.0


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ({"oldest": StrategyOldest(preferred_batch_size=(2, 5))}, "preferred_batch_size 5"),
        ({"oldest": StrategyOldest(preferred_batch_size=(0,))}, "preferred_batch_size 0"),
        ({"oldest": StrategyOldest(max_candidate_sequences=-1)}, "max_candidate_sequences -1"),
        ({"direct": StrategyDirect(minimum_slot_utilization=1.5)}, "minimum_slot_utilization 1.5"),
        ({"direct": StrategyDirect(minimum_slot_utilization=-0.5)}, "minimum_slot_utilization -0.5"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused(strategy, words):
    config = ModelConfig(name="digits", max_batch_size=4, sequence_batching=ModelSequenceBatching(**strategy))

    with pytest.raises(InvalidArgumentError, match=words) as refusal:
        SequenceBatching().create(config, instances=1)

    assert "digits" in str(refusal.value)
