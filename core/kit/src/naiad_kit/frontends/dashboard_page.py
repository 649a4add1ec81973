"""The page of a server's dashboard, which other frontends link to; the distribution naiad-dashboard has it."""

from typing import Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad.server import ServerApi


@runtime_checkable
class DashboardPage(Protocol):
    """Where the dashboard is."""

    name: str = "dashboard-page"

    def url(self, host: str) -> str:
        """The URL for a browser that sees this server under that host name; "" while the dashboard does not listen."""


def dashboard_url(server: ServerApi, host: str) -> str:
    """The URL of the dashboard for a browser that sees this server under that host name; "" without a dashboard."""
    try:
        return server.service(DashboardPage).url(host)
    except UnsupportedError:
        return ""
