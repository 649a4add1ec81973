"""What a framework is to the benchmark: how it writes a model and runs one by itself, and how Naiad runs it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

MLP = (512, 2048, 2048, 1000)
"""The widths of the model under load, from its input to its output."""

Layer = tuple[Any, Any]
"""Weights, FP32[inputs, outputs], and biases, FP32[outputs], as numpy arrays."""

Call = Callable[[Any], object]
"""Runs a model over an FP32 array, one row an item of the batch."""


@dataclass(frozen=True, slots=True)
class Framework:
    """`file` is the model's in its version folder, and `config` what a configuration says of backend and threads.

    `write` makes a file of a multilayer perceptron with ReLU between its layers. `opened` loads such a file with one
    thread and gives the cheapest call of it that the framework itself has, and `plugin` is the plugin's module.
    """

    name: str
    file: str
    config: str
    write: Callable[[Path, Sequence[Layer]], None]
    opened: Callable[[Path], Call]
    plugin: str

    def build(self, folder: Path, widths: Sequence[int] = MLP, more: str = "dynamic_batching {}") -> Path:
        """Write the model and its configuration into a model folder, the model unless it is there; its file.

        `more` is added to the configuration.
        """
        path = folder / "1" / self.file
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self.write(path, list(layers(widths)))
        (folder / "config.pbtxt").write_text(
            f"{self.config}\n"
            "max_batch_size: 64\n"
            "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
            f'input [ {{ name: "x" data_type: TYPE_FP32 dims: [ {widths[0]} ] }} ]\n'
            f'output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {widths[-1]} ] }} ]\n'
            f"{more}\n"
        )
        return path


def layers(widths: Sequence[int]) -> Iterator[Layer]:
    """The layers of a model with weights from a fixed seed."""
    import numpy as np

    chance = np.random.default_rng(7)
    for width, height in pairwise(widths):
        weights = chance.standard_normal((width, height)) / np.sqrt(width)
        yield weights.astype(np.float32), chance.standard_normal(height).astype(np.float32)


def parameters(**values: str) -> str:
    """Model parameters in the text format."""
    return "\n".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in values.items()
    )
