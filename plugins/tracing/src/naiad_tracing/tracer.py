"""The tracer of a server: the service that samples requests, and reads and changes the trace settings."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from naiad.errors import InvalidArgumentError, ModelNotReadyError, UsageError
from naiad.threads import on_own_thread
from naiad.types import Trace
from naiad_kit.tracing import BeginTrace, TraceSettings
from naiad_tracing.file_recording import FileRecording
from naiad_tracing.options import TraceOptions
from naiad_tracing.recording import Recording, Subject
from naiad_tracing.sampling import Sampler, Scopes
from naiad_tracing.selection import read_changes

if TYPE_CHECKING:
    from naiad.server import ServerApi

_logger = logging.getLogger("naiad")


class Tracer:
    """A `naiad_kit.tracing.Tracing`: begins traces between `open` and `close`, on the event loop's thread."""

    name = "tracing"
    extensions = ("trace",)

    def __init__(self, options: TraceOptions) -> None:
        self.active = False
        self._options = options
        self._scopes = Scopes(options.selection)
        self._recording: Recording | None = None
        self._follow: BeginTrace | None = None
        self._check_model: Callable[[str], object] = lambda name: None

    async def start(self, server: "ServerApi") -> None:
        """Start to trace. Raises UsageError when the file cannot be written, or a package is missing."""
        self.open(server.model_config)

    async def stop(self, seconds: float) -> None:
        """Begin no more traces, and write or export all that ended, within so many seconds."""
        await on_own_thread("naiad-close-traces", self.close, seconds)

    def open(self, check_model: Callable[[str], object]) -> None:
        """As `start`.

        `check_model` raises NotFoundError for an unknown model, ModelNotReadyError for one that does not serve.
        """
        self._check_model = check_model
        if self._options.mode == "opentelemetry":
            self._recording = _span_recording(self._options)
        elif self._options.file:
            self._recording = FileRecording(self._options.file)
        self._update_active()

    def close(self, seconds: float) -> None:
        """As `stop`; blocks up to so many seconds."""
        self.active, self._follow = False, None
        recording, self._recording = self._recording, None
        if recording is not None and not recording.close(seconds):
            _logger.error("traces could not all be written within %g s; some are lost", seconds)

    def settings(self, model: str = "") -> TraceSettings:
        """The settings that count for a model, or for all that have none of their own."""
        self._check(model)
        settings = self._scopes.sampler(model).remaining_selection().as_settings()
        if self._options.mode != "triton":
            del settings["log_frequency"]
        return settings | self._options.fixed()

    def update(self, changes: Mapping[str, Sequence[str] | None], model: str = "") -> TraceSettings:
        """Change settings, and return those that count then."""
        self._check(model)
        self._scopes.update(read_changes(changes, self._options.fixed()), model)
        self._update_active()
        return self.settings(model)

    def sample(
        self, model: str, version: int, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> Trace | None:
        """The trace of a request that is sampled or followed, else None."""
        trace = self._sampled(model, version, request_id, traceparent, tracestate)
        follow, self._follow = self._follow, None
        if follow is None:
            return trace
        trace = follow(model, version, trace)
        self._update_active()
        return trace

    def follow_next(self, begin: BeginTrace | None) -> None:
        """Begin the trace of the next request with `begin`, around its own one if it is sampled; None stops that."""
        self._follow = begin
        self._update_active()

    def _sampled(self, model: str, version: int, request_id: str, traceparent: str, tracestate: str) -> Trace | None:
        recording = self._recording
        sampler = self._scopes.sampler(model)
        if recording is None or not recording.records(sampler.selection.levels):
            return None
        caller = recording.caller(traceparent, tracestate) if traceparent else None
        if not sampler.sample(forced=caller is not None and caller.samples):
            return None
        if sampler.remaining == 0:
            self._update_active()
        return recording.begin(Subject(model, version, request_id), sampler, caller)

    def _check(self, model: str) -> None:
        if not model:
            return
        try:
            self._check_model(model)
        except ModelNotReadyError as error:
            raise InvalidArgumentError(f"Request for unknown model : {model}; {error}") from error

    def _update_active(self) -> None:
        """Set `active`: whether any request could be sampled or followed."""
        recording = self._recording

        def may_trace(sampler: Sampler) -> bool:
            return (
                recording is not None
                and recording.records(sampler.selection.levels)
                and sampler.may_sample(recording.takes_callers)
            )

        self.active = self._follow is not None or self._scopes.any(may_trace)


def _span_recording(options: TraceOptions) -> Recording:
    try:
        from naiad_tracing.span_recording import SpanRecording
    except ImportError as error:
        raise UsageError(
            f"--trace-config mode=opentelemetry needs the OpenTelemetry SDK ({error}): "
            "pip install 'naiad-tracing[opentelemetry]'"
        ) from error
    return SpanRecording(options)
