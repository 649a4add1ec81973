"""Binding of servables to the versions that they depend on, in the order of their dependencies."""

import logging
from collections.abc import Mapping, Sequence

from naiad._lifecycle.leases import VersionLease
from naiad._lifecycle.model_record import LOADING, ModelRecord
from naiad._lifecycle.model_registry import ModelRegistry
from naiad._lifecycle.prepared import PreparedDependent
from naiad._lifecycle.version_swapper import VersionSwapper
from naiad.errors import InvalidArgumentError, NaiadError
from naiad.foreign_errors import contained
from naiad.servables import Servable

_logger = logging.getLogger("naiad.model")

Dependencies = Mapping[str, Sequence[str]]
"""The models that each one depends on, by its name."""


class Binder:
    """Binds the servables that depend on other models. No method blocks or awaits."""

    def __init__(self, registry: ModelRegistry, swapper: VersionSwapper) -> None:
        self._registry = registry
        self._swapper = swapper

    def leads_back(self, start: str, name: str) -> bool:
        """Whether one model depends on the other."""
        needs = self._registry.dependencies()
        return start == name or name in dependents(needs, start) or start in needs.get(start, ())

    def bound(self, prepared: PreparedDependent, before: Mapping[int, Servable]) -> dict[int, Servable]:
        """The servables of a model over what serves now; they replace those `before` them.

        Raises ConfigError for models that do not fit together or are not there.
        """
        resolver, name = _Resolver(self._registry, prepared), prepared.config.name
        try:
            with prepared.folder.locate_problems(), contained(f"binding model '{name}'", model=name):
                versions = dict(prepared.servable.bind(resolver, before))
        except BaseException:
            self._registry.leases.bind((), resolver.leases)
            raise
        self._registry.leases.bind(versions.values(), resolver.leases)
        return versions

    def follow(self, name: str) -> None:
        """A model was loaded, swapped or unloaded: bind its dependents anew, or take them out of service."""
        for dependent in dependents(self._registry.dependencies(), name):
            record = self._registry.records[dependent]
            if record.prepared is not None and not record.unloaded:
                self._bind_anew(record, record.prepared)

    def unneeded(self, record: ModelRecord) -> list[str]:
        """The models that this one depends on, that were not loaded by name and that no other model depends on.

        One that is being loaded is needed; to wait for its lock could be to wait for the caller of unload.
        """
        records = self._registry.records
        others = [each for each in records.values() if each is not record and not each.unloaded]
        return [
            name
            for name in record.depends
            if name in records
            and not records[name].explicit
            and not records[name].lock.locked()
            and all(name not in each.depends for each in others)
        ]

    def _bind_anew(self, record: ModelRecord, prepared: PreparedDependent) -> None:
        try:
            versions = self.bound(prepared, record.serving)
        except NaiadError as error:
            why = str(refused(record.name, error))
            if record.serving:
                message = "%s '%s' is UNAVAILABLE: %s"
                _logger.error(message, prepared.kind, record.name, error, extra={"model": record.name})
                self._swapper.swap(record, {}, why=why)
            record.reason = why
            return
        if not record.serving:
            _logger.info("%s '%s' is READY again", prepared.kind, record.name, extra={"model": record.name})
        self._swapper.swap(record, versions)
        record.succeeded(record.reload_error)


class _Resolver:
    """The `ModelResolver` of one binding, with the leases that it has taken."""

    def __init__(self, registry: ModelRegistry, prepared: PreparedDependent) -> None:
        self._registry = registry
        self._name, self._needs = prepared.config.name, prepared.dependencies
        self.leases: list[VersionLease] = []
        self.continuing = registry.sticky_routing.version_for

    def circle(self) -> tuple[str, ...]:
        """The path from the model that is bound back to itself."""
        return circle({**self._registry.dependencies(), self._name: self._needs}, self._name)

    def is_known(self, name: str) -> bool:
        """Whether that model can be used: exactly one repository has it, or it serves while several have it."""
        record = self._registry.records.get(name)
        return record is not None and (bool(record.serving) or not record.ambiguous)

    def why_not(self, name: str) -> str:
        """Why a model does not serve, as a sentence of its own."""
        record = self._registry.records.get(name)
        if record is None or not record.because():
            return ""
        if record.unloaded:
            return f" Model '{name}' was unloaded."
        if not record.has_failed() and any(each.state == LOADING for each in record.states.values()):
            return f" Model '{name}' is still being loaded."
        return f" Model '{name}' loading failed with error{record.because()}"

    def serves(self, name: str, version: int = 0) -> bool:
        """Whether that version is READY; any for version 0."""
        return version in self._registry.serving_versions.get(name, ())

    def lease(self, name: str, version: int = 0) -> VersionLease:
        """The READY version, the largest for version 0. Raises NotFoundError or ModelNotReadyError."""
        lease = self._registry.leases.take(self._registry.find(name, version))
        self.leases.append(lease)
        return lease


def refused(name: str, error: NaiadError) -> InvalidArgumentError:
    """Why a model that depends on others cannot serve, for the caller of its load."""
    return InvalidArgumentError(f"load failed for model '{name}': {error}")


def circle(dependencies: Dependencies, start: str) -> tuple[str, ...]:
    """The path from a model through those that it depends on back to itself, (a, b, a); () when there is none."""
    path: list[str] = []
    dead_ends: set[str] = set()

    def leads_back(name: str) -> bool:
        path.append(name)
        for each in dependencies.get(name, ()):
            if each == start:
                path.append(each)
                return True
            if each not in dead_ends and each not in path and leads_back(each):
                return True
        dead_ends.add(path.pop())
        return False

    return tuple(path) if leads_back(start) else ()


def dependents(dependencies: Dependencies, changed: str) -> list[str]:
    """All that depends on a model, directly or not, each after what it depends on; those in a circle come last."""
    reached: set[str] = set()
    edge = [changed]
    while edge:
        name = edge.pop()
        direct = [each for each, needs in dependencies.items() if name in needs and each not in reached]
        reached.update(direct)
        edge += direct
    ordered: list[str] = []
    rest = sorted(reached)
    while rest:
        ready = [each for each in rest if not any(need in rest for need in dependencies[each])] or rest
        ordered += ready
        rest = [each for each in rest if each not in ready]
    return ordered
