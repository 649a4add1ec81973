"""Proof of naiad-scheduler-sequence alone beside the kernel, in an environment of its own."""

from naiad import PluginRegistry
from naiad.scheduler import Ticket
from naiad_config.text import parse_text
from naiad_kit.sequences import Row

config = parse_text("max_batch_size: 4 sequence_batching {}")
scheduler = PluginRegistry.discover().scheduler("sequence_batching").create(config, 1)
scheduler.arrive(Ticket(1, 0.0, sequence_id=7, sequence_start=True))
(dispatch,) = scheduler.decide(0.0, [0]).dispatches
assert dispatch.rows == (Row(1, 1, start=True),), dispatch
