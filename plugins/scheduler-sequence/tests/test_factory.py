"""How the plugin is found and what it makes of a configuration."""

import naiad_scheduler_sequence
from naiad.config import ModelConfig, ModelSequenceBatching, StrategyDirect
from naiad.scheduler import Row, SchedulerFactory, Ticket
from naiad_scheduler_sequence.factory import SequenceBatching


def test_the_plugin_offers_the_sequence_batcher():
    (factory,) = naiad_scheduler_sequence.naiad_schedulers()

    assert isinstance(factory, SchedulerFactory)
    assert (factory.name, factory.choice) == ("sequence", "sequence_batching")


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
