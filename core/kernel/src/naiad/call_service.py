"""The contract of the service that carries calls from models to other models, and what it sees of the callers."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from naiad.calls import ModelCalls
from naiad.extend import Service, Suspension
from naiad.in_flight import Occupant
from naiad.types import Request


class WatchedRequest(Occupant, Protocol):
    """A request that executes, and on whose behalf its model calls others. For the event loop's thread."""

    def watch(self, listener: Callable[[], None]) -> None:
        """Call that when nobody waits for the answer of the request any more: `Request.cancelled` is set then."""

    def unwatch(self, listener: Callable[[], None]) -> None:
        """Call that no more; harmless when it is not watched."""


class CallingVersion(Protocol):
    """A version whose model may call others. For the event loop's thread."""

    @property
    def is_gated(self) -> bool:
        """Whether its executions may wait for an execution gate."""

    def in_flight(self, requests: Sequence[Request]) -> Sequence[WatchedRequest]:
        """Those of these requests that its instances execute, or go on with; none when they are over."""

    def suspend(self, request: Occupant) -> Suspension | None:
        """The execution of that request waits for another model, and gives up its grant; None where it holds none."""


class VersionCalls(ModelCalls, Protocol):
    """The calls of one version, from its load to its end."""

    def serves(self, version: CallingVersion) -> None:
        """The version is loaded: it is this one. Called on the event loop's thread."""


@runtime_checkable
class ModelCallService(Service, Protocol):
    """The service that carries calls from models to other models of its server."""

    name: str = "model-calls"

    def of_version(self, model: str) -> VersionCalls:
        """The calls of a version of that model, which is about to be loaded. For any thread."""
