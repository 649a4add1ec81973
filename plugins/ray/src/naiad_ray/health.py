"""Health of a replica's server: why Ray Serve should replace the replica."""

from naiad.server import ServerApi


class Health:
    """The health of one server, which remembers the model versions that have been ready."""

    def __init__(self, server: ServerApi) -> None:
        self._server = server
        self._proved: set[tuple[str, int]] = set()

    def reasons(self) -> list[str]:
        """Why the server cannot serve what it could serve before; none while it can.

        A model that failed to load, or has not been ready yet, is no reason: it would be the same in another replica.
        """
        if not self._server.live() or self._server.draining:
            return ["its server has stopped"]
        versions = [(each.name, each.version) for each in self._server.version_reports()]
        readiness = {version: self._server.model_ready(*version) for version in versions}
        self._proved = {version for version, each in readiness.items() if each.ready or version in self._proved}
        return [
            f"model '{name}' version {version} is not ready any more: {'; '.join(readiness[name, version].reasons)}"
            for name, version in sorted(self._proved)
            if not readiness[name, version].ready
        ]
