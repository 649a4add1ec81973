"""The trace of one request: the protocol by which frontends, the kernel and plugins record its events."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from naiad_tensors.tensors import Tensor


class Trace(Protocol):
    """The events of one request, in the order in which they are recorded. Every method is for any thread.

    `version` is 0 until the kernel has chosen the version that answers. Nothing is recorded after `end`, which the code
    that began the trace calls.
    """

    version: int

    @property
    def wants_timestamps(self) -> bool:
        """Whether `record` keeps anything."""

    @property
    def wants_tensors(self) -> bool:
        """Whether `tensors` keeps anything."""

    def record(self, event: str, ns: int | None = None) -> None:
        """Record an event (`QUEUE_START`, `HTTP_SEND_END`, …) at that `time.monotonic_ns()`; None: now."""

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Record copies of these tensors for an activity (`TENSOR_QUEUE_INPUT`, …)."""

    def child(self, model: str, version: int = 0, request_id: str = "") -> "Trace":
        """The trace of a request that this one causes, such as a step of an ensemble; the caller ends it."""

    def current(self) -> AbstractContextManager[None]:
        """Make the innermost span OpenTelemetry's current one on this thread while the block runs."""

    def context(self) -> str:
        """A JSON object of the W3C headers that make other spans children of this trace; "" without any."""

    def end(self) -> None:
        """Record nothing more. Harmless when repeated."""


@dataclass(frozen=True, slots=True)
class JoinedBatch:
    """The batch that a request was executed in: the instance, its items and requests, and why it was closed."""

    instance: str
    batch_size: int
    requests: int
    reason: str


@runtime_checkable
class FollowsBatches(Protocol):
    """A trace that records the batches that its request joins as well."""

    def joined(self, batch: JoinedBatch, ns: int) -> None:
        """The request was passed to an instance in that batch, at that `time.monotonic_ns()`."""
