"""What the cache tells the trace of a request."""

from naiad.server import Outcome
from naiad.trace_events import record_response
from naiad.tracing import Trace


def tell_lookup(trace: Trace, started_ns: int, ended_ns: int, hit: bool) -> None:
    """The cache was asked for the answer."""
    kind = "CACHE_HIT" if hit else "CACHE_MISS"
    trace.record(f"{kind}_LOOKUP_START", started_ns)
    trace.record(f"{kind}_LOOKUP_END", ended_ns)


def tell_hit(trace: Trace, outcome: Outcome) -> None:
    """The cache has the answer, which ends the request."""
    record_response(trace, outcome)
    trace.record("REQUEST_END")
