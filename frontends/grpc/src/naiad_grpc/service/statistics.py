"""RPC of the statistics extension."""

from typing import TYPE_CHECKING, Any

from naiad_grpc.codec.versions import model_of
from naiad_grpc.messages import message_class
from naiad_grpc.service.operations import Operation, operation
from naiad_kit.frontends.statistics import durations
from naiad_statistics.reports import ModelStatistics

if TYPE_CHECKING:
    from naiad.server import ServerApi


class StatisticsRpcs:
    """Counters of all models, of one, or of one version."""

    def __init__(self, server: "ServerApi") -> None:
        self._server = server

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        return [operation("ModelStatistics", "statistics", self.statistics)]

    async def statistics(self, request: Any) -> Any:
        """The counters of every READY version, of those of one model, or of one. Raises NotFoundError."""
        statistics = self._server.statistics(*model_of(request))
        return message_class("ModelStatisticsResponse")(model_stats=[statistics_message(each) for each in statistics])


def statistics_message(statistics: ModelStatistics) -> Any:
    """A model's counters in the format of the extension."""
    message = message_class("ModelStatistics")(
        name=statistics.name,
        version=str(statistics.version),
        last_inference=statistics.last_inference,
        inference_count=statistics.inference_count,
        execution_count=statistics.execution_count,
        inference_stats=durations(statistics),
    )
    for batch in statistics.batch_stats:
        message.batch_stats.add(batch_size=batch.batch_size, **durations(batch))
    for usage in statistics.memory_usage:
        message.memory_usage.add(type=usage.type, id=usage.id, byte_size=usage.byte_size)
    responses = message_class("InferResponseStatistics")
    for index, responded in statistics.response_stats.items():
        message.response_stats[index].CopyFrom(responses(**durations(responded)))
    return message
