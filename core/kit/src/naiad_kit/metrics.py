"""The metrics service as frontends see it: collects every metric of a server."""

from typing import Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad.metrics import MetricFamily, Metrics
from naiad.server import ServerApi


@runtime_checkable
class MetricsApi(Metrics, Protocol):
    """The metrics service of a server. For the event loop's thread, except where a method says otherwise."""

    def collect(self) -> list[MetricFamily]:
        """Every metric now, those of GPUs as of the last `scrape`."""

    def collect_made_by_models(self) -> list[MetricFamily]:
        """The metrics that models make; free of cost without any."""

    async def scrape(self) -> list[MetricFamily]:
        """Every metric, those of the GPUs included, in turns with the other work of the event loop."""


def metrics_of(server: ServerApi) -> MetricsApi | None:
    """The metrics service of a server, None where no plugin brings one."""
    try:
        return server.service(MetricsApi)
    except UnsupportedError:
        return None
