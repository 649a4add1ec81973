"""Holds the ensembles of repositories against their models without loading anything, as `naiad check` does."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from naiad._kernel.configs import in_place
from naiad._kernel.ensembles.dependencies import circle
from naiad._kernel.ensembles.prepared import PreparedEnsemble
from naiad._kernel.loading import PreparedModel
from naiad.errors import ConfigError, NaiadError, Problem
from naiad_config import ModelConfig, ModelTransactionPolicy
from naiad_config.paths import element

Prepared = Mapping[str, PreparedModel | PreparedEnsemble]


def problems_of_ensembles(prepared: Prepared, broken: Mapping[str, object]) -> dict[str, list[str]]:
    """What is wrong between ensembles and their models, by the ensemble; `broken` models have told their own."""
    checked = _Checked(prepared, broken)
    return {name: found for name in checked.names if (found := checked.problems(name))}


class _Checked:
    """Each ensemble after those that it is made of; its configuration says then whether it is decoupled."""

    def __init__(self, prepared: Prepared, broken: Mapping[str, object]) -> None:
        self._prepared = prepared
        self._broken = broken
        self._ensembles = {name: each for name, each in prepared.items() if isinstance(each, PreparedEnsemble)}
        self._needs = {name: each.dependencies for name, each in self._ensembles.items()}
        self._configs: dict[str, ModelConfig] = {}
        self._problems: dict[str, list[str]] = {}

    @property
    def names(self) -> list[str]:
        """The ensembles."""
        return list(self._ensembles)

    def problems(self, name: str) -> list[str]:
        """What is wrong in that ensemble."""
        if name not in self._problems:
            ensemble = self._ensembles[name]
            try:
                with in_place(ensemble.written):
                    self._configs[name] = self._composed(name, ensemble)
                self._problems[name] = []
            except ConfigError as error:
                self._problems[name] = [str(problem) for problem in error.problems]
            except NaiadError as error:
                self._problems[name] = [str(error)]
        return self._problems[name]

    def _composed(self, name: str, ensemble: PreparedEnsemble) -> ModelConfig:
        missing = list(self._missing(name, ensemble))
        if missing:
            raise ConfigError(missing)
        models = [self._config_of(step.model_name) for step in ensemble.steps]
        composition = ensemble.factory.compose(ensemble.config, models)
        if not composition.decoupled:
            return ensemble.config
        return replace(ensemble.config, model_transaction_policy=ModelTransactionPolicy(decoupled=True))

    def _missing(self, name: str, ensemble: PreparedEnsemble) -> Iterator[Problem]:
        ring = circle(self._needs, name)
        if ring:
            yield Problem(f"circular dependency between ensembles: {' -> '.join(ring)}", "ensemble_scheduling")
            return
        for index, step in enumerate(ensemble.steps):
            model, path = step.model_name, element("ensemble_scheduling.step", index)
            found = self._prepared.get(model)
            if model in self._broken or (model in self._needs and self.problems(model)):
                yield Problem(
                    f"ensemble '{name}' depends on '{model}', which has problems itself", f"{path}.model_name"
                )
            elif found is None:
                told = f"ensemble {name} contains models that are not available or ambiguous: {model}"
                yield Problem(told, f"{path}.model_name")
            elif step.model_version > 0 and step.model_version not in [each.version for each in found.contexts]:
                told = (
                    f"ensemble '{name}' depends on '{model}' whose required version {step.model_version} is not there"
                )
                yield Problem(told, f"{path}.model_version")

    def _config_of(self, name: str) -> ModelConfig:
        found = self._prepared[name]
        return self._configs[name] if isinstance(found, PreparedEnsemble) else found.contexts[-1].config
