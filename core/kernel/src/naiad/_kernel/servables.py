"""Binds servables to the versions that they use, and binds them anew whenever one of these changes."""

import logging
from collections.abc import Mapping
from typing import cast

from naiad._kernel.catalogue import Catalogue
from naiad._kernel.configs import in_place
from naiad._kernel.dependencies import circle, dependents
from naiad._kernel.entries import LOADING, ModelEntry
from naiad._kernel.leases import VersionLease
from naiad._kernel.prepared import PreparedDependent
from naiad._kernel.rotation import Rotation
from naiad._kernel.served import ServedVersion
from naiad.errors import InternalError, InvalidArgumentError, NaiadError
from naiad.foreign_errors import describe_error, raise_interrupt

_logger = logging.getLogger("naiad.model")


class Binder:
    """Binds the servables that depend on other models. Nothing here waits."""

    def __init__(self, catalogue: Catalogue, rotation: Rotation) -> None:
        self._catalogue = catalogue
        self._rotation = rotation

    def leads_back(self, start: str, name: str) -> bool:
        """Whether one model depends on the other."""
        needs = self._catalogue.dependencies()
        return start == name or name in dependents(needs, start) or start in needs.get(start, ())

    def bound(self, prepared: PreparedDependent, before: Mapping[int, ServedVersion]) -> dict[int, ServedVersion]:
        """The servables of a model over what serves now; they replace those `before` them.

        Raises ConfigError for models that do not fit together or are not there, InternalError for what a plugin raises.
        """
        resolver = _Resolver(self._catalogue, prepared)
        try:
            with in_place(prepared.written):
                return dict(cast("Mapping[int, ServedVersion]", prepared.servable.bind(resolver, before)))
        except NaiadError:
            resolver.release_all()
            raise
        except BaseException as error:
            resolver.release_all()
            raise_interrupt(error)
            _logger.exception("binding model '%s' failed", prepared.config.name, extra={"model": prepared.config.name})
            raise InternalError(describe_error(error)) from error

    def follow(self, name: str) -> None:
        """A model has changed, came or went: what depends on it is bound anew, or goes out of service."""
        for dependent in dependents(self._catalogue.dependencies(), name):
            entry = self._catalogue.entries[dependent]
            if entry.prepared is not None and not entry.unloaded:
                self._bind_anew(entry, entry.prepared)

    def unneeded(self, entry: ModelEntry) -> list[str]:
        """The models that this one depends on, that nobody asked for by name and no other model depends on.

        One whose load is under way was asked for just now; to wait for that would be to wait for the caller of unload,
        where it is the model itself.
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

    def _bind_anew(self, entry: ModelEntry, prepared: PreparedDependent) -> None:
        try:
            versions = self.bound(prepared, entry.serving)
        except NaiadError as error:
            why = str(refused(entry.name, error))
            if entry.serving:
                _logger.error(
                    "%s '%s' is UNAVAILABLE: %s", prepared.kind, entry.name, error, extra={"model": entry.name}
                )
                self._rotation.swap(entry, {}, why=why)
            entry.reason = why
            return
        if not entry.serving:
            _logger.info("%s '%s' is READY again", prepared.kind, entry.name, extra={"model": entry.name})
        self._rotation.swap(entry, versions)
        entry.succeeded()


class _Resolver:
    """What one binding sees of the models, and the leases that it has taken."""

    def __init__(self, catalogue: Catalogue, prepared: PreparedDependent) -> None:
        self._catalogue = catalogue
        self._name, self._needs = prepared.config.name, prepared.servable.dependencies
        self._leases: list[VersionLease] = []
        self.continuing = catalogue.handover.version_for

    def circle(self) -> tuple[str, ...]:
        """The way from the model that is bound back to itself."""
        return circle({**self._catalogue.dependencies(), self._name: self._needs}, self._name)

    def is_known(self, name: str) -> bool:
        """Whether exactly one repository has that model."""
        entry = self._catalogue.entries.get(name)
        return entry is not None and not entry.ambiguous

    def why_not(self, name: str) -> str:
        """Why a model does not serve, as a sentence of its own."""
        entry = self._catalogue.entries.get(name)
        if entry is None or not entry.because():
            return ""
        if entry.unloaded:
            return f" Model '{name}' was unloaded."
        if not entry.has_failed() and any(each.state == LOADING for each in entry.states.values()):
            return f" Model '{name}' is still being loaded."
        return f" Model '{name}' loading failed with error{entry.because()}"

    def serves(self, name: str, version: int = 0) -> bool:
        """Whether that version is READY; any for version 0."""
        return version in self._catalogue.serving_by_name.get(name, ())

    def lease(self, name: str, version: int = 0) -> VersionLease:
        """The READY version, the largest for version 0. Raises NotFoundError or ModelNotReadyError."""
        lease = self._catalogue.leases.take(self._catalogue.find(name, version))
        self._leases.append(lease)
        return lease

    def release_all(self) -> None:
        """Nothing was bound: the leases are not needed."""
        for lease in self._leases:
            lease.release()


def refused(name: str, error: NaiadError) -> InvalidArgumentError:
    """Why a model that depends on others cannot serve, for the caller of its load."""
    return InvalidArgumentError(f"load failed for model '{name}': {error}")
