"""Servable factory of ensembles: checks a configuration, and binds it to the versions of its models."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from naiad.errors import ConfigError, Problem
from naiad.servables import ConfiguredModels, Lease, ModelResolver, Servable, ServableContext
from naiad_config import ModelConfig
from naiad_config.normalisation import is_ensemble
from naiad_config.paths import element
from naiad_scheduler_ensemble.composition import compose
from naiad_scheduler_ensemble.graph import steps_of
from naiad_scheduler_ensemble.version import EnsembleVersion, with_policy


class EnsembleFactory:
    """The servable factory for `ensemble_scheduling { … }`."""

    name = "ensemble"

    def claims(self, config: ModelConfig) -> bool:
        """Whether it is an ensemble's."""
        return is_ensemble(config)

    def complete(self, config: ModelConfig) -> ModelConfig:
        """The configuration with a platform."""
        return replace(config, platform=config.platform or "ensemble")

    def prepare(self, context: ServableContext) -> "PreparedEnsemble":
        """An ensemble that is ready to be bound."""
        prepared = PreparedEnsemble(context)
        prepared.warn_of_namespaces()
        return prepared


class PreparedEnsemble:
    """An ensemble that was read and checked, and waits for the models of its steps."""

    def __init__(self, context: ServableContext) -> None:
        self._context = context
        self._name = context.config.name
        self._steps = steps_of(context.config)
        self.dependencies = tuple(dict.fromkeys(step.model_name for step in self._steps))

    def bind(self, models: ModelResolver, earlier: Mapping[int, Servable]) -> dict[int, Servable]:
        """Its versions over what serves now; they go on counting where those `earlier` are.

        Raises ConfigError for models that do not fit together or are not there.
        """
        missing = list(self._missing(models))
        if missing:
            raise ConfigError(missing)
        context = self._context
        leases = [self._leases(models) for _ in context.versions]
        composition = compose(context.config, [lease.servable.config for lease in leases[0]])
        servables: dict[int, Servable] = {}
        for version, taken in zip(context.versions, leases, strict=True):
            before = earlier.get(version.version)
            goes_on = isinstance(before, EnsembleVersion) and before.context is context
            counters = before.counters if before is not None and goes_on else context.counters()
            servables[version.version] = EnsembleVersion(context, version, composition, taken, counters, models)
        return servables

    def check(self, models: ConfiguredModels) -> ModelConfig:
        """The configuration over these models. Raises ConfigError for those that do not fit or are not there."""
        missing = list(self._missing_of_configured(models))
        if missing:
            raise ConfigError(missing)
        config = self._context.config
        composition = compose(config, [models.config(step.model_name) for step in self._steps])
        return with_policy(config, composition) if composition.decoupled else config

    def warn_of_namespaces(self) -> None:
        """Say in the log which steps name a namespace; Triton passes over it as well where it has no namespaces."""
        for index, step in enumerate(self._steps):
            if step.model_namespace:
                self._context.versions[-1].logger.warning(
                    "ensemble '%s' step %d: model_namespace '%s' changes nothing, there are no namespaces; the step is "
                    "the model '%s' of whichever repository has it, so leave model_namespace out",
                    self._name,
                    index,
                    step.model_namespace,
                    step.model_name,
                )

    def _leases(self, models: ModelResolver) -> list[Lease]:
        """A lease for each step."""
        return [models.lease(step.model_name, max(0, step.model_version)) for step in self._steps]

    def _missing(self, models: ModelResolver) -> Iterator[Problem]:
        """What of its models does not serve."""
        circle = models.circle()
        if circle:
            yield _circular(circle, hint="an ensemble cannot be part of itself")
            return
        paths = {
            step.model_name: f"{_path(index)}.model_name" for index, step in reversed(list(enumerate(self._steps)))
        }
        unknown = [each for each in self.dependencies if not models.is_known(each)]
        if unknown:
            hint = "each has one folder in one of the model repositories"
            yield Problem(self._unavailable(", ".join(unknown)), paths[unknown[0]], hint=hint)
            return
        for index, step in enumerate(self._steps):
            depends = f"ensemble '{self._name}' depends on '{step.model_name}'"
            if not models.serves(step.model_name):
                why = models.why_not(step.model_name)
                yield Problem(f"{depends} which has no loaded version.{why}", f"{_path(index)}.model_name")
            elif not models.serves(step.model_name, max(0, step.model_version)):
                message = f"{depends} whose required version {step.model_version} is not loaded"
                yield Problem(message, f"{_path(index)}.model_version", hint="-1 takes the latest that serves")

    def _missing_of_configured(self, models: ConfiguredModels) -> Iterator[Problem]:
        """What of its models is not there, or has problems itself."""
        circle = models.circle()
        if circle:
            yield _circular(circle)
            return
        for index, step in enumerate(self._steps):
            depends = f"ensemble '{self._name}' depends on '{step.model_name}'"
            versions = models.versions(step.model_name)
            if models.is_broken(step.model_name):
                yield Problem(f"{depends}, which has problems itself", f"{_path(index)}.model_name")
            elif not versions:
                yield Problem(self._unavailable(step.model_name), f"{_path(index)}.model_name")
            elif step.model_version > 0 and step.model_version not in versions:
                message = f"{depends} whose required version {step.model_version} is not there"
                yield Problem(message, f"{_path(index)}.model_version")

    def _unavailable(self, names: str) -> str:
        return f"ensemble {self._name} contains models that are not available or ambiguous: {names}"


def _circular(circle: tuple[str, ...], hint: str = "") -> Problem:
    return Problem(f"circular dependency between ensembles: {' -> '.join(circle)}", "ensemble_scheduling", hint=hint)


def _path(index: int) -> str:
    return element("ensemble_scheduling.step", index)
