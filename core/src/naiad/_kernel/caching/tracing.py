"""What the cache tells the trace of a request."""

from naiad.tracing import Trace


def tell_lookup(trace: Trace, started_ns: int, ended_ns: int, hit: bool) -> None:
    """The cache was asked for the answer; a hit ends the request."""
    kind = "CACHE_HIT" if hit else "CACHE_MISS"
    trace.record(f"{kind}_LOOKUP_START", started_ns)
    trace.record(f"{kind}_LOOKUP_END", ended_ns)
    if hit:
        trace.record("INFER_RESPONSE_COMPLETE")
        trace.record("REQUEST_END")
