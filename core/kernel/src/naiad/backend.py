"""The contract of a backend: it loads models of one kind, a model makes instances, an instance executes batches.

All of it is blocking code; the kernel calls an instance from one thread at a time, its worker.
"""

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from naiad.batch import RESCHEDULE, Answer, Batch, Reply, Reschedule, Sender
from naiad_config import ModelConfig
from naiad_config.placement import Placement
from naiad_config.repository import first_existing, path_inside
from naiad_statistics.reports import MemoryUsage

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
    """The properties of a backend, which the kernel reads at start-up.

    `name` is the `backend` of a configuration, `aliases` are further names for it, `platforms` its `platform` values.
    `files` maps the names of files or folders that mark a version folder as this backend's to their platform ("" for a
    backend without platforms); the first is the default model file. `framework` is the distribution of its framework,
    or several of which one is needed, the best first. `cpu_instances` is the count of a CPU group without one.
    `uses_gpus` says whether KIND_AUTO may be a GPU. `loads_in_parallel` allows concurrent calls of `instantiate`.
    `executes_files` says that a model's files are programs, which a load request may only bring where that is allowed.
    `code_directory` is the folder of the backend's own Python code, for one that is no distribution; its class makes an
    equal one from that folder alone.
    """

    name: str
    platforms: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    framework: str | tuple[str, ...] = ""
    cpu_instances: int = 1
    loads_in_parallel: bool = True
    uses_gpus: bool = True
    executes_files: bool = False
    code_directory: Path | None = None


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The configuration and folders of a model version.

    For `Backend.complete` the configuration is as the user wrote it (perhaps a name alone); for `Backend.load` it is
    complete, normalised and valid. `settings` are the `--backend-config` values of this backend.
    `compute_capability` is that of the GPU the model goes to (`8.0`), "" on a CPU. `parts` are what services
    have for the version, by the names of the services (`naiad.extend.ModelService`).
    """

    config: ModelConfig
    version: int
    model_directory: Path
    version_directory: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    compute_capability: str = ""
    parts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines carry the model's name and version."""
        extra = {"model": self.config.name, "version": str(self.version)}
        return logging.LoggerAdapter(logging.getLogger("naiad.model"), extra)

    def model_path(self, default: str) -> Path:
        """The model file: from `cc_model_filenames` for this GPU, else `default_model_filename`, else `default`."""
        for_this_gpu = self.config.cc_model_filenames.get(self.compute_capability)
        return self.version_directory / (for_this_gpu or self.config.default_model_filename or default)

    def existing_path(self, *candidates: Path) -> Path:
        """The first of these files or folders that exists.

        Raises NotFoundError, which names the first and lists the version folder.
        """
        return first_existing(candidates, self.version_directory, self.config.name)

    def path_inside(self, path: str | Path, subject: str) -> Path:
        """That path, relative to the model's folder, with all links resolved.

        Raises InvalidArgumentError, which begins with `subject`, for a path outside of the folder.
        """
        return path_inside(self.model_directory, path, subject)


class Instance(Protocol):
    """One loaded copy of a model.

    It may also have:

    * `ready() -> str`: why it is not ready ("" if it is); called often, on another thread than `execute`; may block;
    * `sequence_ended(correlation_id, reason)`: a sequence of which it has executed requests is over, for a
      `naiad_kit.sequences.SequenceEndReason`; called on the thread of `execute`, after the earlier batches;
    * `concurrency: int`: how many batches it takes at once if `execute` returns futures (1 without it);
    * `input_devices: Collection[Device]`: the devices whose tensors it takes by `Batch.resident`.
    """

    def execute(self, batch: Batch) -> "Answer | Future[Answer]":
        """Execute one batch. An exception fails the whole batch; a NaiadError reaches the caller as it is.

        Work on a device has ended when this answers: the inputs are not read any more, and the outputs are complete.
        """

    def close(self) -> None:
        """Free the instance; called once, on the thread of `execute`."""


class Model(Protocol):
    """One loaded version of a model, which makes instances.

    It may also have `memory_usage() -> Sequence[MemoryUsage]`, and `declares_outputs: bool`: if False, the kernel does
    not check the dtypes and shapes of outputs against the configuration.
    """

    def instantiate(self, placement: Placement) -> Instance:
        """Make an instance at that placement. Called on the thread that will execute it."""

    def close(self) -> None:
        """Free what the instances share; called once, after the last instance is closed."""


@runtime_checkable
class Backend(Protocol):
    """Loads models of one kind. Import the framework inside `complete` and `load`, never at module level.

    It may also have `forget(context)`, which is called with the context of `complete` if no `load` follows because the
    configuration is refused; and `isolation_of(context) -> str`, the `isolation` that the model's files ask for ("" for
    none), which is read without running them, before `complete`.
    """

    traits: BackendTraits

    def complete(self, context: ModelContext) -> ModelConfig:
        """The configuration with the inputs, outputs and batching that the model's files declare and it lacks.

        Not called with `--disable-auto-complete-config`. Raises NaiadError for files that contradict the configuration
        or cannot be read.
        """

    def load(self, context: ModelContext) -> Model:
        """Load one version, or raise NaiadError with the file and the reason."""
