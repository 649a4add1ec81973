"""Proof of naiad-process-workers alone beside the kernel, in an environment of its own."""

from pathlib import Path

from naiad import PluginRegistry
from naiad.backend import ModelContext
from naiad.options import Settings
from naiad_config.text import parse_text
from naiad_process_workers.process import Environment, Limits, ModelProcess

registry = PluginRegistry.discover()
(kind,) = registry.workers(Settings(registry.options(), {}), None)
assert kind.name == "process", kind.name
process = ModelProcess(ModelContext(parse_text('name: "m"'), 1, Path(), Path()), Environment.own(), Limits(startup=60))
process.close()
assert not Path(f"/proc/{process.pid}").exists()
