"""The tracing service: samples the requests to trace, and keeps the settings of the protocol's trace extension.

The distribution naiad-tracing brings it. A frontend begins a trace with `Tracing.sample`, records what happens on the
wire, and ends it; the kernel records the rest.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic_ns
from typing import Protocol, runtime_checkable

from naiad.errors import NaiadError, UnsupportedError
from naiad.server import ServerApi
from naiad.types import JoinedBatch, Request, Response, Trace
from naiad_tensors.tensors import Tensor

TraceSettings = Mapping[str, str | tuple[str, ...]]
"""Settings by the names of the trace extension: texts, and `trace_level`, which is a tuple of texts."""


Attributes = Mapping[str, str | int]
"""What is known of a request, by the names of OpenTelemetry's semantic conventions."""


BeginTrace = Callable[[str, int, Trace | None], Trace]
"""Begins the trace of a request to a model and version, around the trace that it has besides."""


class EventTrace(ABC):
    """A trace that makes events of what the kernel reports, by the names of the protocol's trace extension."""

    version: int

    @abstractmethod
    def record(self, event: str, ns: int | None = None) -> None:
        """As `Trace.record`."""

    @abstractmethod
    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """As `Trace.tensors`."""

    def queued(self, version: int, request: Request, model_request: Request) -> None:
        """Record the start of the request, and of its time in the queue."""
        now = monotonic_ns()
        self.version = version
        self.record("REQUEST_START", now)
        self.record("QUEUE_START", now)
        self.tensors("TENSOR_QUEUE_INPUT", request.inputs.values())
        if model_request is not request:
            self.tensors("TENSOR_BACKEND_INPUT", model_request.inputs.values())

    def executing(self, batch: JoinedBatch, ns: int) -> None:
        """Record the start of the execution."""
        self.record("COMPUTE_START", ns)

    def executed(self, started_ns: int, phases: tuple[int, int, int]) -> None:
        """Record the phases of the execution."""
        compute_input, compute_infer, compute_output = phases
        self.record("COMPUTE_INPUT_END", ns := started_ns + compute_input)
        self.record("COMPUTE_OUTPUT_START", ns := ns + compute_infer)
        self.record("COMPUTE_END", ns + compute_output)

    def responded(self, outcome: Response | NaiadError) -> None:
        """Record the response or error, but not an empty response: that only says that the request is over."""
        if isinstance(outcome, Response):
            if outcome.is_empty:
                return
            self.tensors("TENSOR_BACKEND_OUTPUT", outcome.outputs.values())
        self.record("INFER_RESPONSE_COMPLETE")


@runtime_checkable
class TakesAttributes(Protocol):
    """A trace that keeps attributes of the whole request, as spans do and files do not."""

    def add_attributes(self, attributes: Attributes) -> None:
        """Keep these too; `error.type` says that the server failed to answer."""


def add_attributes(trace: Trace, attributes: Attributes) -> None:
    """Add attributes to a trace that has begun, where it keeps any. For frontends, which know their protocol."""
    if isinstance(trace, TakesAttributes):
        trace.add_attributes(attributes)


def traceparent_of(trace: Trace | None) -> str:
    """The header `traceparent` (W3C Trace Context) of a trace; "" for none, and for a trace that goes to a file."""
    context = "" if trace is None else trace.context()
    return str(json.loads(context).get("traceparent", "")) if context else ""


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


@runtime_checkable
class FollowsRequests(Protocol):
    """A tracing service that lets others follow requests too."""

    def follow_next(self, begin: BeginTrace | None) -> None:
        """Call `begin` for the next request that a frontend receives, and only for that; None takes it back.

        Until then `active` is True. `begin` may call this again.
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
