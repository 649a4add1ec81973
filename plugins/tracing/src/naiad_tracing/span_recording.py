"""Trace mode `opentelemetry`: exports through the official SDK over OTLP/HTTP, as `--trace-config` says."""

import threading
from collections.abc import Sequence
from itertools import count

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from naiad import __version__
from naiad_tracing.options import TraceOptions
from naiad_tracing.recording import Caller, Subject
from naiad_tracing.sampling import Sampler
from naiad_tracing.spans import SpanTrace

SERVICE = "naiad"
"""The `service.name` unless another is configured."""


class SpanRecording:
    """Makes the traces of the mode `opentelemetry` and has their spans exported, on a thread of the SDK."""

    takes_callers = True

    def __init__(self, options: TraceOptions) -> None:
        exporter = OTLPSpanExporter(endpoint=options.url)
        # which requests are traced is decided before a span begins, so that the SDK takes all of them
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=_resource(options.resource), shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(
                exporter,
                max_queue_size=options.bsp_max_queue_size,
                schedule_delay_millis=options.bsp_schedule_delay,
                max_export_batch_size=options.bsp_max_export_batch_size,
            )
        )
        self._tracer = self._provider.get_tracer("naiad", __version__)
        self._headers = TraceContextTextMapPropagator()
        self._numbers = count(1)

    def records(self, levels: Sequence[str]) -> bool:
        """Whether there is anything to keep at these levels."""
        return "TIMESTAMPS" in levels

    def caller(self, traceparent: str, tracestate: str) -> Caller | None:
        """The span of these W3C headers."""
        context = self._headers.extract({"traceparent": traceparent, "tracestate": tracestate}, Context())
        span = get_current_span(context).get_span_context()
        return Caller(context, span.trace_flags.sampled) if span.is_valid else None

    def begin(self, subject: Subject, sampler: Sampler, caller: Caller | None) -> SpanTrace:
        """A trace below the caller's span, or one of its own."""
        return SpanTrace(self._tracer, subject, self._numbers, Context() if caller is None else caller.context)

    def close(self, seconds: float) -> bool:
        """Export what has ended; whether that took no longer than so many seconds."""
        closing = threading.Thread(target=self._provider.shutdown, name="naiad-spans", daemon=True)
        closing.start()
        closing.join(max(0.0, seconds))
        return not closing.is_alive()


def _resource(pairs_text: Sequence[str]) -> Resource:
    detected = OTELResourceDetector().detect().attributes
    pairs = [pair.partition("=") for pair in pairs_text]
    return Resource.create({"service.name": SERVICE, **detected, **{key: value for key, _, value in pairs}})
