"""The trace of one request as live OpenTelemetry spans, so that a model's own spans find their parents.

Nothing of OpenTelemetry is imported before this mode is chosen: this module is imported then, and the SDK with it.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic_ns, time_ns
from types import MappingProxyType

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from naiad.errors import NaiadError, RequestCancelledError
from naiad.types import Response
from naiad_kit.tracing import Attributes, EventTrace
from naiad_tensors.tensors import Tensor
from naiad_tracing.recording import Subject


@dataclass(frozen=True, slots=True)
class _Rule:
    """What an event does: the span that notes it, what it begins before and ends after, and the phase it closes."""

    noted_by: str
    begins: str = ""
    ends: tuple[str, ...] = ()
    phase: str = ""


_RULES = MappingProxyType(
    {
        "REQUEST_START": _Rule("model", begins="model"),
        "QUEUE_START": _Rule("model", begins="queue"),
        "COMPUTE_START": _Rule("compute", begins="compute", ends=("queue",)),
        "COMPUTE_INPUT_END": _Rule("compute", phase="compute_input"),
        "COMPUTE_OUTPUT_START": _Rule("compute", phase="compute_infer"),
        "COMPUTE_END": _Rule("compute", ends=("compute",), phase="compute_output"),
        "REQUEST_END": _Rule("model", ends=("queue", "compute", "model")),
    }
)
_ON_THE_WIRE = _Rule("root", begins="root")


class SpanTrace(EventTrace):
    """A `naiad.types.Trace` of the spans `InferRequest`, the model's, `queue`, `compute` and its phases.

    `InferRequest` is the span of the server, and notes what happens on the wire. A trace that another one caused has no
    such span: its model's span is below the innermost of the other. `above` is the span that all are below.
    """

    def __init__(
        self, tracer: Tracer, subject: Subject, numbers: Iterator[int], above: Context, rooted: bool = True
    ) -> None:
        self.version = subject.version
        self._tracer = tracer
        self._subject = subject
        self._numbers = numbers
        self._number = next(numbers)
        self._above = above
        self._rooted = rooted
        self._to_epoch = time_ns() - monotonic_ns()
        self._lock = threading.Lock()
        self._ended = False
        self._spans: dict[str, Span] = {}
        self._phase_began = 0

    def record(self, event: str, ns: int | None = None) -> None:
        """Note what happened on the span that it belongs to; some events begin and end spans."""
        at = self._epoch(ns)
        with self._lock:
            if not self._ended:
                self._follow(_RULES.get(event, _ON_THE_WIRE), event, at)

    def add_attributes(self, attributes: Attributes) -> None:
        """Add them to `InferRequest`, whose status is an error if they have an `error.type`."""
        with self._lock:
            root = self._spans.get("root")
            if root is not None and not self._ended:
                root.set_attributes(dict(attributes))
                if "error.type" in attributes:
                    root.set_status(StatusCode.ERROR)

    def responded(self, outcome: Response | NaiadError) -> None:
        """As of any trace; an error other than a cancellation makes the span of the model one, with its text."""
        super().responded(outcome)
        error = outcome.error if isinstance(outcome, Response) else outcome
        if error is None or isinstance(error, RequestCancelledError):
            return
        with self._lock:
            span = self._spans.get("model")
            if span is not None and not self._ended:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR, str(error))

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Nothing: spans hold no tensors."""

    def child(self, model: str, version: int = 0, request_id: str = "") -> "SpanTrace":
        """A trace whose spans are below the innermost of this one."""
        subject = Subject(model, version, request_id, self._number)
        return SpanTrace(self._tracer, subject, self._numbers, self._inside(), rooted=False)

    @contextmanager
    def current(self) -> Iterator[None]:
        """The innermost span is OpenTelemetry's current one."""
        token = attach(self._inside())
        try:
            yield
        finally:
            detach(token)

    def context(self) -> str:
        """The header `traceparent` and, where the caller sent one, `tracestate`."""
        headers: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(headers, self._inside())
        return json.dumps(headers)

    def end(self) -> None:
        """End every span that is still open."""
        at = self._epoch(None)
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._begin("root", at)
            for span in reversed(self._spans.values()):
                span.end(at)

    def _follow(self, rule: _Rule, event: str, at: int) -> None:
        if rule.begins:
            self._begin(rule.begins, at)
        if rule.phase:
            self._add_phase(rule.phase, at)
        span = self._spans.get(rule.noted_by)
        if span is not None:
            span.add_event(event, timestamp=at)
        for name in rule.ends:
            if name in self._spans:
                self._spans.pop(name).end(at)

    def _begin(self, name: str, at: int) -> None:
        if name in self._spans or (name == "root" and not self._rooted):
            return
        if name == "root":
            self._spans[name] = self._tracer.start_span("InferRequest", self._above, SpanKind.SERVER, start_time=at)
        elif name == "model":
            self._spans[name] = self._tracer.start_span(
                self._subject.model, self._below("root"), start_time=at, attributes=self._attributes()
            )
        else:
            self._spans[name] = self._tracer.start_span(name, self._below("model"), start_time=at)
            self._phase_began = at

    def _add_phase(self, name: str, at: int) -> None:
        began = min(self._phase_began, at)
        self._tracer.start_span(name, self._below("compute"), start_time=began).end(at)
        self._phase_began = at

    def _attributes(self) -> dict[str, str | int]:
        return {
            "triton.model_name": self._subject.model,
            "triton.model_version": self.version,
            "triton.trace_id": self._number,
            "triton.trace_parent_id": self._subject.parent,
            "triton.request_id": self._subject.request_id or "n/a",
        }

    def _inside(self) -> Context:
        """The context of the innermost span that is open, or was when the trace ended."""
        with self._lock:
            if not self._ended:
                self._begin("root", self._epoch(None))
            return self._below("compute", "model", "root")

    def _below(self, *names: str) -> Context:
        """The context of the first of these spans that there is."""
        for name in names:
            if name in self._spans:
                return set_span_in_context(self._spans[name], Context())
        return self._above

    def _epoch(self, ns: int | None) -> int:
        return self._to_epoch + (monotonic_ns() if ns is None else ns)
