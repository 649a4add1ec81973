"""The tracing service: samples the requests to trace, and keeps the settings of the protocol's trace extension.

The distribution naiad-tracing brings it. A frontend begins a trace with `Tracing.sample`, records what happens on the
wire, and ends it; the kernel records the rest.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad.server import ServerApi
from naiad.tracing import Trace

TraceSettings = Mapping[str, str | tuple[str, ...]]
"""Settings by the names of the trace extension: texts, and `trace_level`, which is a tuple of texts."""


Attributes = Mapping[str, str | int]
"""What is known of a request, by the names of OpenTelemetry's semantic conventions."""


@runtime_checkable
class TakesAttributes(Protocol):
    """A trace that keeps attributes of the whole request, as spans do and files do not."""

    def add_attributes(self, attributes: Attributes) -> None:
        """Keep these too; `error.type` says that the server failed to answer."""


def add_attributes(trace: Trace, attributes: Attributes) -> None:
    """Add attributes to a trace that has begun, where it keeps any. For frontends, which know their protocol."""
    if isinstance(trace, TakesAttributes):
        trace.add_attributes(attributes)


@runtime_checkable
class Tracing(Protocol):
    """The service that samples the requests to trace. For the event loop's thread.

    While `active` is False no request is traced: an untraced request costs no more than a look at it.
    """

    name: str = "tracing"
    active: bool

    def settings(self, model: str = "") -> TraceSettings:
        """The settings of a model, or those of all models without settings of their own.

        Raises NotFoundError for an unknown model, InvalidArgumentError for one that is not ready.
        """

    def update(self, changes: Mapping[str, Sequence[str] | None], model: str = "") -> TraceSettings:
        """Change settings of a model, or of all models without settings of their own. Returns the settings then.

        None or an empty sequence clears a setting, so that the next wider scope applies: model, server, command line.
        A refusal changes nothing: InvalidArgumentError for an invalid value, UnsupportedError for a setting of the
        command line alone, NotFoundError for an unknown model.
        """

    def sample(
        self, model: str, version: int, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> Trace | None:
        """The trace of a request, None for one that is not sampled.

        `traceparent` and `tracestate` are the caller's W3C headers; in the mode `opentelemetry` a request that the
        caller samples is traced, whatever the rate.
        """


class NoTracing:
    """The tracing of a server without a tracer: no request is traced. `reason` says what to install."""

    name = "tracing"
    active = False

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def settings(self, model: str = "") -> TraceSettings:
        """Raises UnsupportedError."""
        raise UnsupportedError(self._reason)

    def update(self, changes: Mapping[str, Sequence[str] | None], model: str = "") -> TraceSettings:
        """Raises UnsupportedError."""
        raise UnsupportedError(self._reason)

    def sample(
        self, model: str, version: int, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> Trace | None:
        """None."""
        return None


def tracing_of(server: ServerApi) -> Tracing:
    """The tracing service of a server, a `NoTracing` without a tracer. For frontends, when they start."""
    try:
        return server.service(Tracing)
    except UnsupportedError as error:
        return NoTracing(str(error))
