"""Proof of naiad-loop-handoff alone beside the kernel, in an environment of its own."""

import asyncio

from naiad import PluginRegistry
from naiad.options import Settings

registry = PluginRegistry.discover()
settings = Settings(registry.options(), {})
with asyncio.Runner() as process:
    runner = registry.loop_runner(process.get_loop(), settings)
    kind, on_loop = registry.workers(settings, runner)
    assert on_loop.name == "event_loop", on_loop.name
    assert kind.name == "loop_handoff", kind.name
    assert runner.run(asyncio.sleep(0, "ran")) == "ran"
