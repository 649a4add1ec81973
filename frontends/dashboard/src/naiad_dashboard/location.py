"""Location of the dashboard, as a service, so that other frontends can link to it."""

from typing import TYPE_CHECKING

from naiad_kit.frontends.addresses import host_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - it is compared, not bound


class DashboardLocation:
    """See `naiad_kit.frontends.dashboard_page.DashboardPage`. The frontend says where it listens."""

    name = "dashboard-page"

    def __init__(self) -> None:
        self._address, self._port, self._path = "", 0, ""

    async def start(self, server: "ServerApi") -> None:
        """Keep the path prefix of the dashboard."""
        self._path = server.settings["dashboard-root-path"]

    async def stop(self, seconds: float) -> None:
        """Nothing is held."""

    def listens(self, address: str, port: int) -> None:
        """The dashboard listens there; at port 0 no longer."""
        self._address, self._port = address, port

    def url(self, host: str) -> str:
        """The URL for a browser that sees this server under that host name; "" while the dashboard does not listen."""
        if not self._port:
            return ""
        seen = host if self._address in _EVERY_ADDRESS else self._address
        return f"http://{host_of(seen)}:{self._port}{self._path}/"
