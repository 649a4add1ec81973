"""Counting what an ensemble does: one inference a request, whose queue and compute times are the sums of its steps'."""

from time import monotonic_ns
from typing import TYPE_CHECKING

from naiad._kernel.response_counters import ResponseKind
from naiad._kernel.statistics import FailureReason, VersionCounters
from naiad.trace_events import record_response
from naiad.types import Response

if TYPE_CHECKING:
    from naiad._kernel.ensembles.call import EnsembleCall


class EnsembleCounts:
    """Counts into the counters of an ensemble's version, and tells the traces of its requests."""

    def __init__(self, counters: VersionCounters, decoupled: bool) -> None:
        self._counters = counters
        self._decoupled = decoupled

    def responded(self, call: "EnsembleCall", response: Response) -> None:
        """A response goes out."""
        if self._decoupled:
            kind = ResponseKind.EMPTY_RESPONSE if response.is_empty else ResponseKind.SUCCESS
            waited_ns = _since(call)
            self._counters.responded(call.responses, waited_ns, 0, kind)
            if not call.responses and not response.is_empty:
                self._counters.at(0).first_responses((waited_ns,))
        if call.request.trace is not None:
            record_response(call.request.trace, response)

    def succeeded(self, call: "EnsembleCall") -> None:
        """A request is answered to the end."""
        counters, items = self._counters.at(0), call.ticket.batch_size
        counters.executed(items, call.phases)
        counters.succeeded(items, (_since(call),), (call.queue_ns,), call.phases, streamed=self._decoupled)
        _tell_end(call)

    def failed(self, call: "EnsembleCall") -> None:
        """A request failed; why is counted by the model of the step, too."""
        self._counters.failed(1, _since(call), FailureReason.OTHER)
        _tell_end(call)

    def cancelled(self, call: "EnsembleCall", executing: bool) -> None:
        """The caller of a request left."""
        self._counters.cancelled(_since(call), executing)


def _since(call: "EnsembleCall") -> int:
    return monotonic_ns() - int(call.arrival * 1e9)


def _tell_end(call: "EnsembleCall") -> None:
    if call.request.trace is not None:
        call.request.trace.record("REQUEST_END")
