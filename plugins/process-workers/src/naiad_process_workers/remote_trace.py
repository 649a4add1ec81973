"""The trace of a request in the process of its model: the context for spans of the model's own; the server records."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from naiad.errors import NaiadError
from naiad.types import JoinedBatch, Request, Response
from naiad_tensors.tensors import Tensor


class RemoteTrace:
    """A `naiad.types.Trace` that records nothing; the server has the trace itself.

    `number` and `index` are those of its execution and of its request there.
    """

    def __init__(self, context: str, number: int = 0, index: int = 0) -> None:
        self.version = 0
        self.number, self.index = number, index
        self._context = context

    def record(self, event: str, ns: int | None = None) -> None:
        """Nothing."""

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Nothing."""

    def queued(self, version: int, request: Request, model_request: Request) -> None:
        """Nothing."""

    def executing(self, batch: JoinedBatch, ns: int) -> None:
        """Nothing."""

    def executed(self, started_ns: int, phases: tuple[int, int, int]) -> None:
        """Nothing."""

    def responded(self, outcome: Response | NaiadError) -> None:
        """Nothing."""

    def child(self, model: str, version: int = 0, request_id: str = "") -> "RemoteTrace":
        """This trace: the server makes the child of a call that it gets."""
        return self

    @contextmanager
    def current(self) -> Iterator[None]:
        """The server's span is OpenTelemetry's current one, where the process has OpenTelemetry."""
        try:
            from opentelemetry.context import attach, detach
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            yield
            return
        token = attach(TraceContextTextMapPropagator().extract(json.loads(self._context or "{}")))
        try:
            yield
        finally:
            detach(token)

    def context(self) -> str:
        """The W3C headers of the span in which the server sent the request."""
        return self._context

    def end(self) -> None:
        """Nothing."""


def trace_value(trace: object, context: str) -> list[str | int]:
    """What goes over the link for a trace with that context."""
    if isinstance(trace, RemoteTrace):
        return [context, trace.number, trace.index]
    return [context, 0, 0]
