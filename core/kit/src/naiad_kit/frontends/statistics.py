"""Duration names of the statistics extension, in the order in which they are written."""

from naiad_statistics.reports import BatchStatistics, ModelStatistics, ResponseStatistics

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
_OF_RESPONSES = ("compute_infer", "compute_output", "success", "fail", "empty_response", "cancel")
_OF_BATCHES = ("compute_input", "compute_infer", "compute_output")


def durations(counted: ModelStatistics | ResponseStatistics | BatchStatistics) -> dict[str, dict[str, int]]:
    """How often each of its durations was counted (`count`), and nanoseconds in all (`ns`)."""
    names: tuple[str, ...] = _OF_BATCHES
    if isinstance(counted, ModelStatistics):
        names = _OF_REQUESTS
    elif isinstance(counted, ResponseStatistics):
        names = _OF_RESPONSES
    durations = {name: getattr(counted, name) for name in names}
    return {name: {"count": duration.count, "ns": duration.ns} for name, duration in durations.items()}
