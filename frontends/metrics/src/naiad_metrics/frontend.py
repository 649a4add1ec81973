"""The metrics frontend: starts and stops its listener with the server."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from naiad_kit.frontends.addresses import host_of
from naiad_kit.frontends.forking import keep_from_children
from naiad_kit.metrics import MetricsApi
from naiad_metrics.options import address_of

if TYPE_CHECKING:
    from naiad.server import ServerApi
    from naiad_kit.frontends.embedded_server import EmbeddedListener


class MetricsFrontend:
    """Serves metrics to Prometheus. `address` and `port` are set once it listens."""

    name = "metrics"

    def __init__(self) -> None:
        self.address = ""
        self.port = 0
        self._listener: EmbeddedListener | None = None
        self._share: Callable[[], None] = lambda: None

    async def start(self, server: "ServerApi") -> str:
        """Listen as configured by the options, and return the URL; "" with `--allow-metrics=false`.

        Raises UnavailableError if the port is not available and InvalidArgumentError for an invalid address.
        """
        settings = server.settings
        if not settings["allow-metrics"]:
            return ""
        from naiad_kit.frontends.embedded_server import EmbeddedListener
        from naiad_metrics.application import make_application  # uvicorn and starlette take 0.1 s to import

        listener = await EmbeddedListener.open(
            make_application(server.service(MetricsApi)),
            address_of(settings),
            settings["metrics-port"],
            name="metrics",
            subject="metrics",
        )
        self._listener, self.address, self.port = listener, listener.address, listener.port
        self._share = keep_from_children(self.port)
        return f"http://{host_of(self.address)}:{self.port}/metrics"

    async def stop(self, grace: float) -> None:
        """Accept no new connections, finish requests in flight within `grace` seconds, then close all connections."""
        if self._listener is not None:
            await self._listener.close(grace)
            self._share()
            self._listener = None
