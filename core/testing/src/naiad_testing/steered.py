"""Steered backend: a fake whose steps (complete, load, instantiate, execute) are functions of the test."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from naiad.backend import Answer, Backend, BackendTraits, Batch, ModelContext, Placement
from naiad.hookspecs import hookimpl
from naiad_config import ModelConfig


class Steered:
    """A backend, and its own plugin. A step without a function does the usual: OUTPUT is INPUT."""

    def __init__(
        self,
        name: str = "steered",
        *,
        complete: Callable[[ModelContext], ModelConfig] | None = None,
        load: Callable[[ModelContext], Any] | None = None,
        instantiate: Callable[[Placement], Any] | None = None,
        execute: Callable[[Batch], Answer | Future[Answer]] | None = None,
        **traits: Any,
    ) -> None:
        self.traits = BackendTraits(name=name, **traits)
        self.execute = execute or (lambda batch: {"OUTPUT": batch.input("INPUT")})
        self.placements: list[Placement] = []
        self.contexts: list[ModelContext] = []
        self._complete = complete
        self._load = load
        self._instantiate = instantiate

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        """The backend itself."""
        return [self]

    def complete(self, context: ModelContext) -> ModelConfig:
        """The configuration as it is, or what the test's function makes of it."""
        return self._complete(context) if self._complete is not None else context.config

    def load(self, context: ModelContext) -> Any:
        """A SteeredModel, or what the test's function returns."""
        self.contexts.append(context)
        return self._load(context) if self._load is not None else SteeredModel(self)

    def instantiate(self, placement: Placement) -> Any:
        """A SteeredInstance, or what the test's function returns."""
        self.placements.append(placement)
        return self._instantiate(placement) if self._instantiate is not None else SteeredInstance(self)


class SteeredModel:
    """A model of Steered; a test may give it the optional members of the contract."""

    def __init__(self, backend: Steered) -> None:
        self._backend = backend

    def instantiate(self, placement: Placement) -> Any:
        """An instance of the backend."""
        return self._backend.instantiate(placement)

    def close(self) -> None:
        """Nothing to release."""


class SteeredInstance:
    """An instance of Steered that takes `concurrency` batches at once."""

    def __init__(self, backend: Steered, concurrency: int = 1) -> None:
        self.concurrency = concurrency
        self._backend = backend

    def execute(self, batch: Batch) -> Answer | Future[Answer]:
        """What the backend's `execute` answers."""
        return self._backend.execute(batch)

    def close(self) -> None:
        """Nothing to release."""
