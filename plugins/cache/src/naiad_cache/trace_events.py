"""The trace events of a lookup in a response cache."""

from naiad.server import Outcome
from naiad.trace_events import record_response
from naiad.tracing import Trace


def record_lookup(trace: Trace, started_ns: int, ended_ns: int, hit: bool) -> None:
    """Record when the cache was asked and had answered, by `time.monotonic_ns()`."""
    kind = "CACHE_HIT" if hit else "CACHE_MISS"
    trace.record(f"{kind}_LOOKUP_START", started_ns)
    trace.record(f"{kind}_LOOKUP_END", ended_ns)


def record_hit(trace: Trace, outcome: Outcome) -> None:
    """Record the response from the cache, which ends the request."""
    record_response(trace, outcome)
    trace.record("REQUEST_END")
