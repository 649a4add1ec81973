"""The contract of a backend: three nouns with few methods each, all of them plain blocking code.

A backend loads models of one kind, a model makes instances, an instance executes batches. The kernel calls an
instance from one thread at a time (its worker); a backend author never writes `await`.
"""

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from naiad.batch import RESCHEDULE, Answer, Batch, Reply, Reschedule, Sender
from naiad.calls import ModelCalls, NoModels
from naiad.errors import InvalidArgumentError, NotFoundError
from naiad.metrics import MetricRegistry
from naiad_config import ModelConfig
from naiad_config.placement import Placement

__all__ = [
    "RESCHEDULE",
    "Answer",
    "Backend",
    "BackendTraits",
    "Batch",
    "Instance",
    "MemoryUsage",
    "Model",
    "ModelContext",
    "Placement",
    "Reply",
    "Reschedule",
    "Sender",
]


@dataclass(frozen=True, slots=True)
class BackendTraits:
    """What the kernel must know of a backend before it loads anything.

    `name` is the `backend` of a configuration and `aliases` are further names for it; `platforms` the `platform`
    values it serves. `files` maps the file or folder names that mark a version folder as this backend's to their
    platform ("" for a backend without platforms); the first is the default model file. `framework` is the
    distribution of the framework it runs on ("" for none), or several of which one is needed, the best first, so that
    its version can be shown without an import. `cpu_instances` is the instance count of a CPU group without one.
    `uses_gpus` says whether KIND_AUTO may mean a GPU. `loads_in_parallel` allows instances of one model to be made at
    the same time.
    """

    name: str
    platforms: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    framework: str | tuple[str, ...] = ""
    cpu_instances: int = 1
    loads_in_parallel: bool = True
    uses_gpus: bool = True


@dataclass(frozen=True, slots=True)
class ModelContext:
    """Where a model version comes from and how it is configured.

    For `Backend.complete` the configuration is what the user wrote (perhaps nothing but a name); for `Backend.load`
    it is complete, normalised and valid. `settings` are the `--backend-config` values of this backend.
    `compute_capability` is that of the GPU the model goes to (`8.0`), "" on a CPU. `metrics` is where the model makes
    metrics of its own, for as long as it is loaded, and `models` is how it calls other models.
    """

    config: ModelConfig
    version: int
    model_directory: Path
    version_directory: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    compute_capability: str = ""
    metrics: MetricRegistry = field(default_factory=MetricRegistry, compare=False, repr=False)
    models: ModelCalls = field(default_factory=NoModels, compare=False, repr=False)

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines carry the model's name and version."""
        extra = {"model": self.config.name, "version": str(self.version)}
        return logging.LoggerAdapter(logging.getLogger("naiad.model"), extra)

    def model_path(self, default: str) -> Path:
        """The model file inside the version folder.

        That is the file that `cc_model_filenames` has for this GPU, else `default_model_filename`, else `default`.
        """
        for_this_gpu = self.config.cc_model_filenames.get(self.compute_capability)
        return self.version_directory / (for_this_gpu or self.config.default_model_filename or default)

    def existing_path(self, *candidates: Path) -> Path:
        """The first of these that is there, file or folder.

        Raises NotFoundError, that names the first and says what the version folder has instead.
        """
        for path in candidates:
            if path.exists():
                return path
        folder = self.version_directory
        found = ", ".join(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ""
        raise NotFoundError(
            f"unable to find '{candidates[0]}' for model '{self.config.name}': "
            + (f"the version folder has {found}; " if found else "the version folder is empty; ")
            + "put the model there, or name it with default_model_filename"
        )

    def path_inside(self, path: str | Path, told: str) -> Path:
        """That path, from the model's folder on, with all links followed.

        Raises InvalidArgumentError, which begins with `told`, when it leads out of the folder.
        """
        inside = (self.model_directory / path).resolve()
        if not inside.is_relative_to(self.model_directory.resolve()):
            raise InvalidArgumentError(f"{told} leaves the model's folder; put the file into '{self.model_directory}'")
        return inside


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Memory that a model holds: `type` is `CPU`, `CPU_PINNED` or `GPU`, `id` the device, and its bytes."""

    type: str
    id: int
    byte_size: int


class Instance(Protocol):
    """One loaded copy of a model.

    It may also have: `ready() -> str`, the reason why it is not ready ("" when it is), called often, on a thread of its
    own and beside `execute`, so it may block but not be `async def`; `sequence_ended(correlation_id, reason)`;
    `concurrency: int`, how many batches it takes at once when `execute` returns futures (1 without it); and
    `input_devices: Collection[Device]`, the devices of `naiad.devices` whose tensors it takes as they are, by
    `Batch.resident`. `sequence_ended` is called on the thread that executes, after the batches that came before, for
    each sequence that this instance has executed requests of and that is over; `reason` is a
    `naiad.scheduler.SequenceEndReason`. Not when the instance itself has died.
    """

    def execute(self, batch: Batch) -> "Answer | Future[Answer]":
        """Run one batch. An exception fails the whole batch; a NaiadError keeps its kind on the way to the caller.

        What it started on a device has ended when it answers: it reads no input any more, and its outputs are whole.
        """
        ...

    def close(self) -> None:
        """Free what the instance holds; called once, on the thread that executed."""
        ...


class Model(Protocol):
    """One loaded version of a model, which makes instances.

    It may also have `memory_usage() -> Sequence[MemoryUsage]`, and `declares_outputs: bool`; False says that the
    configuration does not bind this model's outputs, so the kernel does not hold their dtypes and shapes against it.
    """

    def instantiate(self, placement: Placement) -> Instance:
        """Make an instance there. Called on the thread that will execute it."""
        ...

    def close(self) -> None:
        """Free what the instances share; called once, after the last instance was closed."""
        ...


@runtime_checkable
class Backend(Protocol):
    """Loads models of one kind. Import the framework inside `complete` and `load`, never at module level.

    A backend that keeps something of `complete` for `load` may have a method `forget(context)` as well: it is called
    with the context of `complete` when the configuration is refused, so that no `load` follows.
    """

    traits: BackendTraits

    def complete(self, context: ModelContext) -> ModelConfig:
        """Fill what the configuration leaves open (inputs, outputs, batching) from the model's files.

        Return it unchanged where the files say nothing. Not called with `--disable-auto-complete-config`.
        Raises NaiadError when the files contradict the configuration or cannot be read.
        """
        ...

    def load(self, context: ModelContext) -> Model:
        """Load one version, or raise NaiadError with the file and the reason."""
        ...
