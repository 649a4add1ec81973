"""Proof of naiad-scheduler-ensemble alone beside the kernel, in an environment of its own."""

from naiad import PluginRegistry
from naiad_config.text import parse_text
from naiad_scheduler_ensemble.composition import compose

tensors = 'input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }'
step = 'step { model_name: "m" input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }'
config = parse_text('name: "e" platform: "ensemble" ' + tensors + " ensemble_scheduling { " + step + " }")
assert PluginRegistry.discover().servable(config).name == "ensemble"
(start,) = compose(config, [parse_text(tensors)]).run({"x": 1}, ()).begin().starts
assert start.inputs == {"x": 1}, start
