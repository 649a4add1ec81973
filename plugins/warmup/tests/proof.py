"""Proof of naiad-warmup alone beside the kernel, in an environment of its own."""

from pathlib import Path

from naiad import PluginRegistry
from naiad.backend import ModelContext
from naiad.types import Response
from naiad.warmup import VersionParts
from naiad_config.text import parse_text

value = "data_type: TYPE_FP32 dims: 2 zero_data: true"
sample = 'name: "m" model_warmup { name: "s" batch_size: 1 inputs { key: "x" value { ' + value + " } } }"
context = ModelContext(parse_text(sample), 1, Path(), Path())
(warmup,) = PluginRegistry.discover().warmup(context)
executed = []


class Instance:
    def execute(self, batch):
        executed.append(batch.input("x").tolist())
        return [Response("m", 1, "", {})]


warmup.warm_up(Instance(), "m_0", VersionParts(lambda request: (request, 1), lambda answer, batch: answer))
assert executed == [[0.0, 0.0]], executed
