"""Every model that the server knows of, which of its versions serve, and what is asked about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from naiad._kernel.entries import READY, ModelEntry
from naiad._kernel.handover import Handover
from naiad._kernel.leases import Leases
from naiad._kernel.served import ServedVersion
from naiad.errors import NotFoundError
from naiad.reports import IndexEntry, ModelStatistics, Readiness
from naiad.types import Request


class Catalogue:
    """The models of these repositories: `entries` by name, `serving_by_name` the READY versions, the largest also as 0.

    `handover` knows the sequences that go on in versions that are none of these any more, `leases` which versions are
    used by others and must not end before these, `folders` the models that
    were in the repositories when these were last read, by name in order, as they are in the index without versions.
    Every method runs on the event loop's thread.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = roots
        self.entries: dict[str, ModelEntry] = {}
        self.serving_by_name: dict[str, dict[int, ServedVersion]] = {}
        self.handover = Handover()
        self.leases = Leases()
        self.folders: Mapping[str, IndexEntry] = {}

    def find(self, name: str, version: int = 0) -> ServedVersion:
        """The READY version, the largest for version 0. Raises NotFoundError or ModelNotReadyError with the reason."""
        versions = self.serving_by_name.get(name)
        found = versions.get(version) if versions is not None else None
        if found is not None:
            return found
        entry = self.entries.get(name)
        if entry is None:
            raise NotFoundError(f"Request for unknown model: '{name}' is not found")
        raise entry.missing(version)

    def version_for(self, request: Request) -> ServedVersion:
        """The version that a request goes to. Raises NotFoundError or ModelNotReadyError with the reason.

        That is the READY one, but for a request that carries on a sequence in a version that goes out of service.
        """
        if request.correlation_id and (leaving := self.handover.version_for(request)) is not None:
            return leaving
        return self.find(request.model_name, request.version)

    def ready_versions(self, name: str) -> tuple[int, ...]:
        """The versions of a model that serve, ascending; none for an unknown model."""
        return tuple(sorted(version for version in self.serving_by_name.get(name, ()) if version))

    def readiness(self, expects_models: bool) -> Readiness:
        """Ready while every model that was asked for serves all its versions; the reasons name each that does not.

        With `expects_models`, a server without any model is not ready either.
        """
        reasons = [reason for entry in self.entries.values() for reason in entry.not_ready_reasons()]
        if expects_models and all(entry.unloaded for entry in self.entries.values()):
            roots = ", ".join(map(str, self.roots)) or "none is given"
            reasons.append(f"there is no model to serve in the model repositories ({roots})")
        return Readiness(not reasons, tuple(reasons))

    def failures(self) -> list[str]:
        """Why models could not be loaded, one reason each; an instance that is not ready yet is no such reason."""
        failed = [entry for entry in self.entries.values() if entry.has_failed()]
        return [reason for entry in failed for reason in entry.not_ready_reasons()]

    def dependencies(self) -> dict[str, tuple[str, ...]]:
        """The models that each one depends on, by the name of the dependent."""
        return {name: entry.depends for name, entry in self.entries.items() if entry.depends}

    def serving(self) -> list[ServedVersion]:
        """The READY versions of all models."""
        return [each for model in sorted(self.serving_by_name) for each in self._in_order(model)]

    def statistics(self, name: str = "", version: int = 0) -> list[ModelStatistics]:
        """The counters of the READY versions. Raises NotFoundError or ModelNotReadyError for a model that has none."""
        if not name:
            return [each.statistics() for each in self.serving()]
        self.find(name, version)
        return [each.statistics() for each in self._in_order(name) if version in (0, each.version)]

    def index(self, only_ready: bool = False) -> list[IndexEntry]:
        """Every model folder, as last read, and every version that was to be loaded with its state and the reason."""
        folders = self.folders
        more = [name for name, entry in self.entries.items() if name not in folders and not entry.is_over()]
        found = []
        for name in sorted([*folders, *more]) if more else folders:
            entry = self.entries.get(name)
            if entry is None:
                found.append(folders[name])
            else:
                found.extend(entry.index())
        return [entry for entry in found if entry.state == READY] if only_ready else found

    def _in_order(self, name: str) -> list[ServedVersion]:
        return [self.serving_by_name[name][version] for version in self.ready_versions(name)]
