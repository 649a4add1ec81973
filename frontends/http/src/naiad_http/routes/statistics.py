"""Routes of the statistics extension."""

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from naiad_http.routes.operations import Operation, as_json, model_of
from naiad_kit.frontends.statistics import durations
from naiad_statistics.reports import ModelStatistics

if TYPE_CHECKING:
    from naiad.server import ServerApi


class StatisticsRoutes:
    """Counters of all models, of one, or of one version."""

    def __init__(self, server: "ServerApi") -> None:
        self._server = server

    def operations(self) -> list[Operation]:
        """Every operation of this group; that of all models must come before a model named `stats`."""
        model = "/v2/models/{model}"
        return [
            Operation("GET", "/v2/models/stats", "statistics", "Counters of all models", self.all_statistics),
            Operation("GET", f"{model}/stats", "statistics", "Counters of a model", self.statistics),
            Operation(
                "GET", f"{model}/versions/{{version}}/stats", "statistics", "Counters of a version", self.statistics
            ),
        ]

    async def all_statistics(self, _request: Request) -> Response:
        """The counters of every READY version."""
        return as_json({"model_stats": [statistics_json(each) for each in self._server.statistics()]})

    async def statistics(self, request: Request) -> Response:
        """The counters of one model's READY versions, or of one version."""
        statistics = self._server.statistics(*model_of(request))
        return as_json({"model_stats": [statistics_json(each) for each in statistics]})


def statistics_json(statistics: ModelStatistics) -> dict[str, Any]:
    """A model's counters in the format of the extension; `batch_reasons`, why batches were closed, is our own."""
    return {
        "name": statistics.name,
        "version": str(statistics.version),
        "last_inference": statistics.last_inference,
        "inference_count": statistics.inference_count,
        "execution_count": statistics.execution_count,
        "inference_stats": durations(statistics),
        "response_stats": {index: durations(each) for index, each in statistics.response_stats.items()},
        "batch_stats": [{"batch_size": each.batch_size, **durations(each)} for each in statistics.batch_stats],
        "memory_usage": [
            {"type": each.type, "id": each.id, "byte_size": each.byte_size} for each in statistics.memory_usage
        ],
        "batch_reasons": dict(statistics.batch_reasons),
    }
