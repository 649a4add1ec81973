"""Tracing: the trace of one request, and the service that samples requests and has the settings.

A frontend takes the `Tracing` of a server when it starts, with `tracing_of(server)`. It asks that for the trace of a
request and records what happens on the wire; the kernel records the rest; who began a trace ends it.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad.tensors import Tensor

TraceSettings = Mapping[str, str | tuple[str, ...]]
"""Settings by the names of the trace extension: all are text, but for `trace_level`, which is a tuple of texts."""


class Trace(Protocol):
    """What happens to one request, in the order in which it is told. Every method may be called on any thread.

    `version` is 0 until the kernel has found the version that answers. After `end` nothing is recorded any more.
    """

    version: int

    @property
    def wants_timestamps(self) -> bool:
        """Whether `record` keeps anything."""
        ...

    @property
    def wants_tensors(self) -> bool:
        """Whether `tensors` keeps anything."""
        ...

    def record(self, event: str, ns: int | None = None) -> None:
        """This happened (`QUEUE_START`, `HTTP_SEND_END`, …) at that `time.monotonic_ns()`; None: at this moment."""
        ...

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """These tensors were seen (`TENSOR_QUEUE_INPUT`, …); they are copied, so that their memory may be used anew."""
        ...

    def child(self, model: str, version: int = 0, request_id: str = "") -> "Trace":
        """The trace of a request that this one causes: a step of an ensemble, or a call from within a model.

        Whoever asks for it ends it.
        """
        ...

    def current(self) -> AbstractContextManager[None]:
        """Makes the innermost span of the trace OpenTelemetry's current one on this thread while the block runs."""
        ...

    def context(self) -> str:
        """A JSON object of the W3C headers that make other spans children of this trace; "" when it has none."""
        ...

    def end(self) -> None:
        """All is told: the last byte was handed to the transport, or the caller is gone. Harmless when repeated."""
        ...


@runtime_checkable
class Tracing(Protocol):
    """The service that samples the requests to trace. For the event loop's thread.

    `active` False means that no request is traced: it is all that the path of a request looks at.
    """

    name: str = "tracing"
    active: bool

    def settings(self, model: str = "") -> TraceSettings:
        """The settings that count for a model, or for all that have none of their own.

        Raises NotFoundError for an unknown model, InvalidArgumentError for one that is not ready.
        """
        ...

    def update(self, changes: Mapping[str, Sequence[str] | None], model: str = "") -> TraceSettings:
        """Change settings of a model, or of all that have none of their own, and give what counts then.

        None or an empty sequence clears a setting, so that the wider scope's counts: the model's is the server's, the
        server's is the command line's. Nothing changes when anything is refused: InvalidArgumentError for what makes no
        sense, UnsupportedError for what only the command line sets, NotFoundError for an unknown model.
        """
        ...

    def sample(
        self, model: str, version: int, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> Trace | None:
        """The trace of a request when it is to be traced; None when not, which most are not.

        `traceparent` and `tracestate` are the caller's W3C headers; in the mode `opentelemetry` a caller who samples
        makes the server trace the request, whatever the rate.
        """
        ...


class NoTracing:
    """The tracing of a server without a tracer: no request is traced, and there are no settings.

    `reason` says what to install.
    """

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


class _HasServices(Protocol):
    """A server, as far as `tracing_of` needs it."""

    def service(self, kind: type[Tracing]) -> Tracing:
        """The service of that kind. Raises UnsupportedError where no plugin brings it."""
        ...


def tracing_of(server: _HasServices) -> Tracing:
    """The tracing of a server, a `NoTracing` where no plugin brings a tracer. For frontends, when they start."""
    try:
        return server.service(Tracing)
    except UnsupportedError as error:
        return NoTracing(str(error))
