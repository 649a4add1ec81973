"""Proof of naiad-scheduler-dynamic alone beside the kernel, in an environment of its own."""

from naiad import PluginRegistry
from naiad.scheduler import Ticket
from naiad_config.text import parse_text

config = parse_text("max_batch_size: 4 dynamic_batching {}")
scheduler = PluginRegistry.discover().scheduler("dynamic_batching").create(config, 1)
for number in range(4):
    scheduler.arrive(Ticket(number, 0.0))
(dispatch,) = scheduler.decide(0.0, [0]).dispatches
assert dispatch.tickets == (0, 1, 2, 3), dispatch
