"""Proof of naiad-rate-limiter alone beside the kernel, in an environment of its own."""

from naiad import PluginRegistry
from naiad.backend import Placement
from naiad.options import Settings
from naiad_config import ModelConfig, ModelInstanceGroup, ModelRateLimiter, RateLimiterResource

plugins = PluginRegistry.discover()
gates = plugins.gates(Settings(plugins.options(), {"rate-limit": "execution_count"}))
group = ModelInstanceGroup(rate_limiter=ModelRateLimiter(resources=(RateLimiterResource(name="R", count=1),)))
slots, granted = [Placement("a", "CPU", 0, group), Placement("b", "CPU", 0, group)], []
gate = gates.admit(ModelConfig(), slots)
gate.enter(slots)
for slot in (0, 1):
    gate.want(slot, granted.append)
gate.grant()
assert granted == [0], granted
gate.release(0)
gate.grant()
assert granted == [0, 1], granted
