"""What `request.trace()` gives: the trace of a request, for a model that begins spans of its own."""

from naiad.tracing import Trace


class InferenceTrace:
    """The trace that follows a request, where it is traced."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace

    def get_context(self) -> str | None:
        """The trace's context as the text of a JSON object of W3C headers; None where there is none."""
        return None if self._trace is None else self._trace.context() or None
