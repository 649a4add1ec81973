"""The statistics extension."""

from typing import TYPE_CHECKING, Any

from naiad.reports import Duration, ModelStatistics
from naiad_grpc.messages import message_class
from naiad_grpc.service.models import model_of
from naiad_grpc.service.operations import Operation, operation

if TYPE_CHECKING:
    from naiad import Server

_OF_REQUESTS = (
    "success",
    "fail",
    "queue",
    "compute_input",
    "compute_infer",
    "compute_output",
    "cache_hit",
    "cache_miss",
)
_OF_BATCHES = ("compute_input", "compute_infer", "compute_output")
_OF_RESPONSES = ("compute_infer", "compute_output", "success", "fail", "empty_response", "cancel")


class StatisticsRpcs:
    """Counters of all models, of one, or of one version."""

    def __init__(self, server: "Server") -> None:
        self._server = server

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        return [operation("ModelStatistics", "statistics", self.statistics)]

    async def statistics(self, request: Any) -> Any:
        """The counters of every READY version, of those of one model, or of one. Raises NotFoundError."""
        found = self._server.statistics(*model_of(request))
        return message_class("ModelStatisticsResponse")(model_stats=[statistics_message(each) for each in found])


def statistics_message(statistics: ModelStatistics) -> Any:
    """A model's counters as the extension writes them."""
    made = message_class("ModelStatistics")(
        name=statistics.name,
        version=str(statistics.version),
        last_inference=statistics.last_inference,
        inference_count=statistics.inference_count,
        execution_count=statistics.execution_count,
        inference_stats=_durations(statistics, _OF_REQUESTS),
    )
    for batch in statistics.batch_stats:
        made.batch_stats.add(batch_size=batch.batch_size, **_durations(batch, _OF_BATCHES))
    for usage in statistics.memory_usage:
        made.memory_usage.add(type=usage.type, id=usage.id, byte_size=usage.byte_size)
    responses = message_class("InferResponseStatistics")
    for place, responded in statistics.response_stats.items():
        made.response_stats[place].CopyFrom(responses(**_durations(responded, _OF_RESPONSES)))
    return made


def _durations(counted: Any, names: tuple[str, ...]) -> dict[str, dict[str, int]]:
    return {name: _duration(getattr(counted, name)) for name in names}


def _duration(duration: Duration) -> dict[str, int]:
    return {"count": duration.count, "ns": duration.ns}
