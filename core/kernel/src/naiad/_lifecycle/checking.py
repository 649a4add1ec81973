"""Checks servables against the models that they depend on without loading anything, as `naiad check` does."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from naiad._lifecycle.binding import circle
from naiad._lifecycle.prepared import Prepared
from naiad.errors import ConfigError, NaiadError
from naiad_config import ModelConfig


def problems_of_dependents(prepared: Mapping[str, Prepared], broken: Collection[str]) -> dict[str, list[str]]:
    """The problems between models and those that they depend on, by the dependent.

    `broken` are the models that could not be prepared.
    """
    check = _Check("", prepared, broken)
    problems = {name: replace(check, name=name).problems() for name, each in prepared.items() if each.dependent}
    return {name: listed for name, listed in problems.items() if listed}


@dataclass(frozen=True, slots=True)
class _Check:
    """The models as the dependent `name` sees them, whose configurations may follow from their own models."""

    name: str
    _prepared: Mapping[str, Prepared]
    _broken: Collection[str]
    _configs: dict[str, ModelConfig] = field(default_factory=dict)
    _problems: dict[str, list[str]] = field(default_factory=dict)

    def problems(self) -> list[str]:
        """The problems of the dependent, which is checked once."""
        dependent = self._prepared[self.name].dependent
        if self.name not in self._problems and dependent is not None:
            self._problems[self.name] = []
            try:
                with dependent.folder.locate_problems():
                    self._configs[self.name] = dependent.servable.check(self)
            except ConfigError as error:
                self._problems[self.name] = [str(problem) for problem in error.problems]
            except NaiadError as error:
                self._problems[self.name] = [str(error)]
        return self._problems.get(self.name, [])

    def circle(self) -> tuple[str, ...]:
        return circle({name: each.dependencies for name, each in self._prepared.items()}, self.name)

    def is_broken(self, name: str) -> bool:
        return name in self._broken or (name in self._prepared and bool(replace(self, name=name).problems()))

    def versions(self, name: str) -> Collection[int]:
        return [each.version for each in self._prepared[name].contexts] if name in self._prepared else []

    def config(self, name: str) -> ModelConfig:
        return self._configs[name] if name in self._configs else self._prepared[name].config
