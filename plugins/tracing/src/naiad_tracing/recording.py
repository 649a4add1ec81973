"""The protocol of a trace mode: how its traces begin and where they are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from naiad.types import Trace
from naiad_tracing.sampling import Sampler


@dataclass(frozen=True, slots=True)
class Subject:
    """The request that a trace is about; `parent` is the number of the trace that caused it, 0 for none."""

    model: str
    version: int
    request_id: str
    parent: int = 0


@dataclass(frozen=True, slots=True)
class Caller:
    """The span of the caller, as OpenTelemetry's context, and whether the caller records it."""

    context: Any
    samples: bool


class Recording(Protocol):
    """One trace mode in operation. `takes_callers` says whether it uses the span of a caller."""

    takes_callers: bool

    def records(self, levels: Sequence[str]) -> bool:
        """Whether there is anything to keep at these levels."""
        ...

    def caller(self, traceparent: str, tracestate: str) -> Caller | None:
        """The caller of these W3C headers; None when they name none, or nothing can be done with it."""
        ...

    def begin(self, subject: Subject, sampler: Sampler, caller: Caller | None) -> Trace:
        """A trace of a request that the sampler picked."""
        ...

    def close(self, seconds: float) -> bool:
        """Write or export everything recorded; returns whether that took at most so many seconds. Blocks so long."""
        ...
