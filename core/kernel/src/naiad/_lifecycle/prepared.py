"""Prepared models: configurations that were read, completed and checked, and what they hold until they are closed."""

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from naiad.backend import Backend, ModelContext, Placement
from naiad.extend import MakeWorker
from naiad.foreign_errors import logged
from naiad.scheduler import SchedulerFactory
from naiad.servables import PreparedServable
from naiad_config import ModelConfig
from naiad_config.model_folder import ModelFolder


@dataclass(frozen=True, slots=True)
class _Contexts:
    """A context for each version to serve, with the same configuration."""

    contexts: tuple[ModelContext, ...]

    @property
    def config(self) -> ModelConfig:
        """The configuration."""
        return self.contexts[-1].config


@dataclass(frozen=True, slots=True)
class PreparedModel(_Contexts):
    """A model that is ready to be loaded, and who loads, schedules and runs it."""

    backend: Backend
    factory: SchedulerFactory
    placements: tuple[Placement, ...]
    worker: MakeWorker
    dependent: None = None
    dependencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PreparedDependent(_Contexts):
    """A model that a servable factory of that `kind` has prepared; `folder` knows where its keys are."""

    kind: str
    folder: ModelFolder
    servable: PreparedServable
    dependencies: tuple[str, ...]

    @property
    def dependent(self) -> "PreparedDependent":
        """It is bound to other models."""
        return self


Prepared: TypeAlias = PreparedModel | PreparedDependent

Held = list[AbstractContextManager[Any]]
"""What the versions of a model need until they are closed, in the order in which it was entered."""


def release(held: Held, error: BaseException | None = None) -> None:
    """Leave what was held, the last first, with the error of the load that failed. Blocks; what it raises is logged."""
    with logged("releasing the files of a model"):
        stack = ExitStack()
        for each in held:
            stack.push(each)
        stack.__exit__(type(error) if error else None, error, None)
