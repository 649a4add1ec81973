"""Holds servables against the models that they depend on without loading anything, as `naiad check` does."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from naiad._kernel.configs import in_place
from naiad._kernel.dependencies import circle
from naiad._kernel.loading import PreparedModel
from naiad._kernel.prepared import PreparedDependent
from naiad.errors import ConfigError, NaiadError
from naiad_config import ModelConfig


def problems_of_dependents(
    prepared: Mapping[str, PreparedModel | PreparedDependent], broken: Collection[str]
) -> dict[str, list[str]]:
    """What is wrong between models and those that they depend on, by the dependent.

    `broken` are the models that could not be prepared.
    """
    check = _Check(prepared, broken)
    return {name: found for name in check.needs if (found := check.problems(name))}


class _Check:
    """Checks each dependent after those that it depends on: their configurations may follow from their own models."""

    def __init__(self, prepared: Mapping[str, PreparedModel | PreparedDependent], broken: Collection[str]) -> None:
        self._dependents = {name: each for name, each in prepared.items() if isinstance(each, PreparedDependent)}
        self.needs = {name: each.servable.dependencies for name, each in self._dependents.items()}
        self._broken = broken
        self._contexts = {name: each.contexts for name, each in prepared.items()}
        self._configs: dict[str, ModelConfig] = {}
        self._problems: dict[str, list[str]] = {}

    def problems(self, name: str) -> list[str]:
        """What is wrong in that dependent."""
        if name not in self._problems:
            dependent = self._dependents[name]
            try:
                with in_place(dependent.written):
                    self._configs[name] = dependent.servable.check(_ConfiguredModels(self, name))
                self._problems[name] = []
            except ConfigError as error:
                self._problems[name] = [str(problem) for problem in error.problems]
            except NaiadError as error:
                self._problems[name] = [str(error)]
        return self._problems[name]

    def is_broken(self, name: str) -> bool:
        """Whether that model has problems."""
        return name in self._broken or (name in self._dependents and bool(self.problems(name)))

    def versions(self, name: str) -> Collection[int]:
        """The versions of that model."""
        return [each.version for each in self._contexts.get(name, ())]

    def config(self, name: str) -> ModelConfig:
        """The configuration of a sound model."""
        return self._configs[name] if name in self._configs else self._contexts[name][-1].config


@dataclass(frozen=True, slots=True)
class _ConfiguredModels:
    """The models as one dependent sees them."""

    _check: _Check
    _name: str

    def circle(self) -> tuple[str, ...]:
        return circle(self._check.needs, self._name)

    def is_broken(self, name: str) -> bool:
        return self._check.is_broken(name)

    def versions(self, name: str) -> Collection[int]:
        return self._check.versions(name)

    def config(self, name: str) -> ModelConfig:
        return self._check.config(name)
