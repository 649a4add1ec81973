"""The dashboard frontend: starts and stops its listener with the server."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from naiad.errors import UnavailableError
from naiad_dashboard.location import DashboardLocation
from naiad_dashboard.options import DEFAULT_PORT
from naiad_kit.frontends.addresses import host_of
from naiad_kit.frontends.forking import keep_from_children

if TYPE_CHECKING:
    from naiad.server import ServerApi
    from naiad_dashboard.application import Dashboard
    from naiad_kit.frontends.embedded_server import EmbeddedListener

_logger = logging.getLogger("naiad")


class DashboardFrontend:
    """Serves the dashboard to browsers. `address` and `port` are set once it listens."""

    name = "dashboard"

    def __init__(self) -> None:
        self.address = ""
        self.port = 0
        self._dashboard: Dashboard | None = None
        self._listener: EmbeddedListener | None = None
        self._location: DashboardLocation | None = None
        self._share: Callable[[], None] = lambda: None

    async def start(self, server: "ServerApi") -> str:
        """Listen as configured by the options, and return the URL; "" with `--allow-dashboard=false`.

        Raises UnavailableError if the port is not available and InvalidArgumentError for an invalid option. Only a
        warning is logged where the default port is in use, so that a second server on the machine starts.
        """
        settings = server.settings
        if not settings["allow-dashboard"]:
            return ""
        from naiad_dashboard.application import Dashboard  # uvicorn and starlette take 0.1 s to import
        from naiad_kit.frontends.embedded_server import EmbeddedListener

        dashboard = Dashboard(server)
        port = settings["dashboard-port"]
        try:
            listener = await EmbeddedListener.open(
                dashboard.application,
                settings["dashboard-address"],
                port,
                name="dashboard",
                subject="the dashboard",
            )
        except UnavailableError as error:
            if port != DEFAULT_PORT:
                raise
            _logger.warning("%s", error)
            return ""
        self._dashboard, self._listener = dashboard, listener
        self.address, self.port = listener.address, listener.port
        self._location = server.service(DashboardLocation)
        self._location.listens(self.address, self.port)
        self._share = keep_from_children(self.port)
        return f"http://{host_of(self.address)}:{self.port}{settings['dashboard-root-path']}/"

    async def stop(self, grace: float) -> None:
        """End the live streams, finish requests in flight within `grace` seconds, then close all connections."""
        if self._listener is not None and self._dashboard is not None:
            self._dashboard.stop()
            if self._location is not None:
                self._location.listens("", 0)
            await self._listener.close(grace)
            self._share()
            self._listener = self._dashboard = None
