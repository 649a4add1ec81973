"""Binds ensembles to the versions of their models that serve, and binds them anew whenever one of these changes."""

import logging
from collections.abc import Iterator, Mapping

from naiad._kernel.catalogue import Catalogue
from naiad._kernel.configs import in_place
from naiad._kernel.ensembles.dependencies import circle, dependents
from naiad._kernel.ensembles.prepared import PreparedEnsemble
from naiad._kernel.ensembles.version import EnsembleVersion
from naiad._kernel.entries import LOADING, ModelEntry
from naiad._kernel.rotation import Rotation
from naiad._kernel.served import ServedVersion
from naiad._kernel.statistics import VersionCounters
from naiad.errors import ConfigError, InvalidArgumentError, NaiadError, Problem
from naiad_config.paths import element

_logger = logging.getLogger("naiad.model")


class Ensembles:
    """The ensembles among the models. Nothing here waits: to bind one is to look at configurations."""

    def __init__(self, catalogue: Catalogue, rotation: Rotation) -> None:
        self._catalogue = catalogue
        self._rotation = rotation

    def leads_back(self, start: str, name: str) -> bool:
        """Whether one model depends on the other."""
        needs = self._dependencies()
        return start == name or name in dependents(needs, start) or start in needs.get(start, ())

    def bound(self, prepared: PreparedEnsemble, before: Mapping[int, ServedVersion]) -> dict[int, EnsembleVersion]:
        """The versions of an ensemble over what serves now; they go on counting where those `before` them are.

        Raises ConfigError for models that do not fit together, InvalidArgumentError for those that are not there.
        """
        catalogue = self._catalogue
        with in_place(prepared.written):
            missing = list(self._missing(prepared))
            if missing:
                raise ConfigError(missing)
            versions = catalogue.serving_by_name
            steps = [versions[step.model_name][max(0, step.model_version)] for step in prepared.steps]
            composition = prepared.factory.compose(prepared.config, [step.config for step in steps])
        found = {}
        for context in prepared.contexts:
            last = before.get(context.version)
            again = isinstance(last, EnsembleVersion) and last.prepared is prepared
            counters = last.counters if last is not None and again else VersionCounters(prepared.plan)
            found[context.version] = EnsembleVersion(
                prepared, context, composition, steps, counters, catalogue.handover.version_for
            )
            found[context.version].load_seconds = last.load_seconds if last is not None and again else 0.0
        return found

    def follow(self, name: str) -> None:
        """A model has changed, came or went: what depends on it is bound anew, or goes out of service."""
        for dependent in dependents(self._dependencies(), name):
            entry = self._catalogue.entries[dependent]
            if entry.ensemble is not None and not entry.unloaded:
                self._bind_anew(entry, entry.ensemble)

    def unneeded(self, entry: ModelEntry) -> list[str]:
        """The models of an ensemble that nobody asked for by name and no other ensemble needs.

        One whose load is under way was asked for just now; to wait for that would be to wait for whoever unloads, where
        it is the model itself.
        """
        entries = self._catalogue.entries
        others = [each for each in entries.values() if each is not entry and not each.unloaded]
        return [
            name
            for name in entry.depends
            if name in entries
            and not entries[name].explicit
            and not entries[name].lock.locked()
            and all(name not in each.depends for each in others)
        ]

    def _bind_anew(self, entry: ModelEntry, prepared: PreparedEnsemble) -> None:
        try:
            versions = self.bound(prepared, entry.serving)
        except NaiadError as error:
            why = str(refused(entry.name, error))
            if entry.serving:
                _logger.error("ensemble '%s' is UNAVAILABLE: %s", entry.name, error, extra={"model": entry.name})
                self._rotation.swap(entry, {}, why=why)
            entry.reason = why
            return
        if not entry.serving:
            _logger.info("ensemble '%s' is READY again", entry.name, extra={"model": entry.name})
        self._rotation.swap(entry, versions)
        entry.succeeded()

    def _missing(self, prepared: PreparedEnsemble) -> Iterator[Problem]:
        """What is not there of the models of an ensemble."""
        name, catalogue = prepared.config.name, self._catalogue
        ring = circle({**self._dependencies(), name: prepared.dependencies}, name)
        if ring:
            told = f"circular dependency between ensembles: {' -> '.join(ring)}"
            yield Problem(told, "ensemble_scheduling", hint="an ensemble cannot be part of itself")
            return
        places = {
            step.model_name: f"{element('ensemble_scheduling.step', index)}.model_name"
            for index, step in reversed(list(enumerate(prepared.steps)))
        }
        entries = {each: catalogue.entries.get(each) for each in prepared.dependencies}
        unknown = [each for each, entry in entries.items() if entry is None or entry.ambiguous]
        if unknown:
            told = f"ensemble {name} contains models that are not available or ambiguous: {', '.join(unknown)}"
            yield Problem(told, places[unknown[0]], hint="each has one folder in one of the model repositories")
            return
        for index, step in enumerate(prepared.steps):
            entry = entries[step.model_name]
            depends = f"ensemble '{name}' depends on '{step.model_name}'"
            serving = catalogue.serving_by_name.get(step.model_name)
            path = element("ensemble_scheduling.step", index)
            if serving is None:
                yield Problem(f"{depends} which has no loaded version.{_why(entry)}", f"{path}.model_name")
            elif max(0, step.model_version) not in serving:
                told = f"{depends} whose required version {step.model_version} is not loaded"
                yield Problem(told, f"{path}.model_version", hint="-1 takes the latest that serves")

    def _dependencies(self) -> dict[str, tuple[str, ...]]:
        return {name: entry.depends for name, entry in self._catalogue.entries.items() if entry.depends}


def _why(entry: ModelEntry | None) -> str:
    """Why a model does not serve, as a sentence of its own."""
    if entry is None or not entry.because():
        return ""
    if entry.unloaded:
        return f" Model '{entry.name}' was unloaded."
    if not entry.has_failed() and any(each.state == LOADING for each in entry.states.values()):
        return f" Model '{entry.name}' is still being loaded."
    return f" Model '{entry.name}' loading failed with error{entry.because()}"


def refused(name: str, error: NaiadError) -> InvalidArgumentError:
    """Why an ensemble cannot serve, as whoever loads it is told."""
    return InvalidArgumentError(f"load failed for model '{name}': {error}")
