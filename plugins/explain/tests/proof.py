"""Proof of naiad-explain alone beside the kernel, in an environment of its own."""

from pathlib import Path

from naiad import PluginRegistry
from naiad.backend import ModelContext
from naiad.extend import StageContext
from naiad.options import Settings
from naiad_config.text import parse_text

registry = PluginRegistry.discover()
context = ModelContext(parse_text('name: "m"'), 1, Path(), Path())
(stage,) = registry.stages(StageContext(context, Settings(registry.options(), {}), None, None, None))
assert stage.parameter == "naiad_explain", stage.parameter
