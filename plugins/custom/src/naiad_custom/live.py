"""Live models: serves a function or class of a test or notebook, without a file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from naiad import hookimpl
from naiad.backend import Backend, BackendTraits, Model, ModelContext
from naiad_config import ModelConfig
from naiad_custom.completion import completed
from naiad_custom.context import python_context
from naiad_custom.native import DefinedModel, ModelDefinition


def enter(target: Callable[..., Any], repository: Path) -> Sequence[object]:
    """Write a model folder for the marked object, and return the plugin that serves it from that folder."""
    name = target.__name__
    backend = f"live-{name}"
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(f'backend: "{backend}"\n', encoding="utf-8")
    return [LivePlugin(LiveBackend(backend, target))]


class LivePlugin:
    """A plugin with one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        """The backend that serves the object."""
        return [self._backend]


class LiveBackend:
    """Serves one marked object under its own name. Raises ConfigError for annotations that say too little."""

    def __init__(self, name: str, target: Callable[..., Any]) -> None:
        self.traits = BackendTraits(name=name)
        self._definition = ModelDefinition(target)

    def isolation_of(self, context: ModelContext) -> str:
        """On threads of this process, which has the object; what `@model` says is for a file of it."""
        return "thread"

    def complete(self, context: ModelContext) -> ModelConfig:
        """The configuration with what the annotations say."""
        return completed(context.config, self._definition.signature, self._definition.declaration)

    def load(self, context: ModelContext) -> Model:
        """The object as a model."""
        return DefinedModel(self._definition, python_context(context))
