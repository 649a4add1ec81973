"""Workbench for tests of backends: a model folder, and completion and loading as the kernel does them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from naiad.backend import Backend, Batch, Instance, Model, ModelContext
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_config.normalisation import instance_placements, normalise
from naiad_config.text import parse_text
from naiad_tensors.ragged import BatchLayout, layout_of
from naiad_tensors.tensors import Tensor


@dataclass
class Loaded:
    """A model that went through the backend, its complete configuration, and an instance for each placement."""

    config: ModelConfig
    model: Model
    instances: list[Instance]

    @property
    def instance(self) -> Instance:
        """The first."""
        return self.instances[0]

    def execute(self, *inputs: Mapping[str, Any], requested: tuple[str, ...] = ()) -> Any:
        """What the first instance answers to one batch of these requests."""
        batching, layout = self.config.max_batch_size > 0, layout_of(self.config)
        return self.instance.execute(batch_of(*inputs, requested=requested, batching=batching, layout=layout))


def batch_of(
    *inputs: Mapping[str, Any],
    requested: tuple[str, ...] = (),
    batching: bool = True,
    layout: BatchLayout | None = None,
) -> Batch:
    """A batch of requests with these inputs by name: tensors, or whatever `Tensor.of` takes."""
    requests = [
        Request(
            "m",
            {name: value if isinstance(value, Tensor) else Tensor.of(name, value) for name, value in each.items()},
            requested=requested,
        )
        for each in inputs
    ]
    sizes = [next(iter(request.inputs.values())).shape[0] if batching else 1 for request in requests]
    return Batch(requests, sizes, layout=layout)


def tensor_entry(kind: str, name: str, datatype: str, dims: str) -> str:
    """An input or output as a configuration writes it: of `kind` `input` or `output`, with `dims` as `1, -1`."""
    return f'{kind} [ {{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] }} ]\n'


def parameter_entry(key: str, value: str) -> str:
    """A parameter as a configuration writes it."""
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


@dataclass
class Workbench:
    """Completes and loads version 1 of the model `m` in `directory` with `backend`, on a machine with `gpus` GPUs."""

    directory: Path
    backend: Backend
    gpus: int = 0

    def path(self, file: str) -> Path:
        """Where a file of the version lies; its folder is there."""
        path = self.directory / "1" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def context(self, config: str = "", settings: Mapping[str, str] | None = None) -> ModelContext:
        """The context of that configuration, in the text format, with these `--backend-config` values."""
        written = replace(parse_text(config), name="m")
        return ModelContext(written, 1, self.directory, self.directory / "1", settings or {})

    def complete(self, config: str = "", settings: Mapping[str, str] | None = None) -> ModelConfig:
        """What the backend makes of the configuration."""
        return self.backend.complete(self.context(config, settings))

    def load(self, config: str = "", settings: Mapping[str, str] | None = None) -> Loaded:
        """The model with its instances."""
        context = self.context(config, settings)
        completed = normalise(self.backend.complete(context), traits=self.backend.traits, gpus=self.gpus)
        model = self.backend.load(replace(context, config=completed))
        instances = [model.instantiate(placement) for placement in instance_placements(completed, self.gpus)]
        return Loaded(completed, model, instances)
