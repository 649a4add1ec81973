"""The model registry: all models of a server with their states, and which versions serve requests."""

from naiad._lifecycle.leases import Leases
from naiad._lifecycle.model_record import READY, ModelRecord
from naiad._lifecycle.repository import RepositoryReader
from naiad._lifecycle.servables import statistics_of
from naiad._lifecycle.sticky_routing import StickyRouting
from naiad.errors import ModelNotReadyError, NotFoundError
from naiad.reports import IndexEntry, Readiness
from naiad.servables import Servable
from naiad.types import Request
from naiad_statistics.reports import ModelStatistics


class ModelRegistry:
    """The models by name: their `records`, and in `serving_versions` the READY versions, the largest also as 0.

    `repositories` has the model folders as last read. For the event loop's thread.
    """

    def __init__(self, repositories: RepositoryReader) -> None:
        self.repositories = repositories
        self.records: dict[str, ModelRecord] = {}
        self.serving_versions: dict[str, dict[int, Servable]] = {}
        self.sticky_routing = StickyRouting()
        self.leases = Leases()

    def find(self, name: str, version: int = 0) -> Servable:
        """The READY version, the largest for version 0. Raises NotFoundError or ModelNotReadyError with the reason."""
        servable = self.serving_versions.get(name, {}).get(version)
        if servable is not None:
            return servable
        record = self.records.get(name)
        if record is None and self.repositories.was_read:
            raise NotFoundError(f"Request for unknown model: '{name}' is not found")
        if record is None:
            raise ModelNotReadyError(f"Request for unknown model: '{name}', the model repositories are not read yet")
        raise record.missing(version)

    def version_for(self, request: Request) -> Servable:
        """The READY version for a request, or the draining one whose sequence it carries on. Raises as `find`."""
        if request.correlation_id and (draining := self.sticky_routing.version_for(request)) is not None:
            return draining
        return self.find(request.model_name, request.version)

    def ready_versions(self, name: str) -> tuple[int, ...]:
        """The versions of a model that serve, ascending; none for an unknown model."""
        return tuple(sorted(version for version in self.serving_versions.get(name, ()) if version))

    def readiness(self, expects_models: bool) -> Readiness:
        """Ready while every model that is to be loaded serves all its versions; the reasons name each that does not.

        With `expects_models`, a server without any model is not ready either.
        """
        reasons = [reason for record in self.records.values() for reason in record.not_ready_reasons()]
        roots = ", ".join(map(str, self.repositories.roots)) or "none is given"
        if not self.repositories.was_read:
            reasons.append(f"the model repositories ({roots}) could not be read yet; the log says why")
        elif expects_models and all(record.unloaded for record in self.records.values()):
            reasons.append(f"there is no model to serve in the model repositories ({roots})")
        return Readiness(not reasons, tuple(reasons))

    def progress(self) -> str:
        """How many of the models have been loaded, or have failed."""
        if not self.records:
            return "no model is known yet"
        ended = [record for record in self.records.values() if record.serving or record.has_failed()]
        return f"loading models: {len(ended)} of {len(self.records)}"

    def dependencies(self) -> dict[str, tuple[str, ...]]:
        """The models that each one depends on, by the name of the dependent."""
        return {name: record.depends for name, record in self.records.items() if record.depends}

    def serving(self) -> list[Servable]:
        """The READY versions of all models."""
        return [each for model in sorted(self.serving_versions) for each in self._in_order(model)]

    def statistics(self, name: str = "", version: int = 0) -> list[ModelStatistics]:
        """The counters of the READY versions. Raises NotFoundError or ModelNotReadyError for a model that has none."""
        if name:
            self.find(name, version)
        versions = [each for each in self._in_order(name) if version in (0, each.version)] if name else self.serving()
        return [counters for each in versions for counters in statistics_of(each)]

    def index(self, only_ready: bool = False) -> list[IndexEntry]:
        """Every model folder, as last read, and every version that was to be loaded with its state and the reason."""
        folders = self.repositories.index
        more = [name for name, record in self.records.items() if name not in folders and not record.is_over()]
        entries = []
        for name in sorted([*folders, *more]) if more else folders:
            record = self.records.get(name)
            entries += [folders[name]] if record is None else record.index()
        return [entry for entry in entries if entry.state == READY] if only_ready else entries

    def _in_order(self, name: str) -> list[Servable]:
        return [self.serving_versions[name][version] for version in self.ready_versions(name)]
