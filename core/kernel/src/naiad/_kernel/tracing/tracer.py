"""The `naiad.tracing.Tracing` of a server: settings, samplers and the mode at work, put together."""

import logging
from collections.abc import Callable, Mapping, Sequence

from naiad._kernel.tracing.files import FileRecording
from naiad._kernel.tracing.options import TraceOptions
from naiad._kernel.tracing.recording import Recording, Subject
from naiad._kernel.tracing.sampling import Sampler, Scopes
from naiad._kernel.tracing.selection import read_changes
from naiad.errors import InvalidArgumentError, ModelNotReadyError
from naiad.tracing import Trace, TraceSettings

_logger = logging.getLogger("naiad")


class Tracer:
    """Begins traces between `open` and `close`, on the event loop's thread.

    `check_model` raises NotFoundError for a model that there is not, ModelNotReadyError for one that does not serve.
    """

    def __init__(self, options: TraceOptions, check_model: Callable[[str], object]) -> None:
        self.active = False
        self._options = options
        self._check_model = check_model
        self._scopes = Scopes(options.selection)
        self._recording: Recording | None = None

    def open(self) -> None:
        """Start to trace. Raises InvalidArgumentError when the file cannot be written, or a package is missing."""
        if self._options.mode == "opentelemetry":
            self._recording = _span_recording(self._options)
        elif self._options.file:
            self._recording = FileRecording(self._options.file)
        self._look_again()

    def close(self, seconds: float) -> None:
        """Begin no traces any more, and write or export all that ended. Blocks up to so many seconds."""
        self.active = False
        recording, self._recording = self._recording, None
        if recording is not None and not recording.close(seconds):
            _logger.error("traces could not all be written within %g s; some are lost", seconds)

    def settings(self, model: str = "") -> TraceSettings:
        """The settings that count for a model, or for all that have none of their own."""
        self._check(model)
        told = self._scopes.sampler(model).left().told()
        if self._options.mode != "triton":
            del told["log_frequency"]
        return told | self._options.fixed()

    def update(self, changes: Mapping[str, Sequence[str] | None], model: str = "") -> TraceSettings:
        """Change settings, and give those that count then."""
        self._check(model)
        self._scopes.update(read_changes(changes, self._options.fixed()), model)
        self._look_again()
        return self.settings(model)

    def sample(
        self, model: str, version: int, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> Trace | None:
        """The trace of a request, if it is to have one."""
        recording = self._recording
        sampler = self._scopes.sampler(model)
        if recording is None or not recording.records(sampler.selection.levels):
            return None
        caller = recording.caller(traceparent, tracestate) if traceparent else None
        if not sampler.sample(forced=caller is not None and caller.samples):
            return None
        if sampler.remaining == 0:
            self._look_again()
        return recording.begin(Subject(model, version, request_id), sampler, caller)

    def _check(self, model: str) -> None:
        if not model:
            return
        try:
            self._check_model(model)
        except ModelNotReadyError as error:
            raise InvalidArgumentError(f"Request for unknown model : {model}; {error}") from error

    def _look_again(self) -> None:
        """Whether there is any request that could be traced."""
        recording = self._recording

        def may_trace(sampler: Sampler) -> bool:
            return (
                recording is not None
                and recording.records(sampler.selection.levels)
                and sampler.may_sample(recording.takes_callers)
            )

        self.active = self._scopes.any(may_trace)


def _span_recording(options: TraceOptions) -> Recording:
    try:
        from naiad._kernel.tracing.exporting import SpanRecording
    except ImportError as error:
        raise InvalidArgumentError(
            f"--trace-config mode=opentelemetry needs the OpenTelemetry SDK ({error}): "
            "pip install 'naiad[opentelemetry]'"
        ) from error
    return SpanRecording(options)
