"""Fake service and plugin: for tests of what starts, looks up and stops services."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from naiad.extend import Service
from naiad.hookspecs import hookimpl

if TYPE_CHECKING:
    from naiad.options import Settings

__all__ = ["FakeService"]


class FakeService:
    """A service that writes down what is called: pass it to `Server(plugins=[...])`, ask for `FakeService`.

    `events` has `start`, and `stop` once it has ended; `failure` is raised by both.
    """

    name = "fake"

    def __init__(self, events: list[str] | None = None) -> None:
        self.events: list[str] = [] if events is None else events
        self.failure: BaseException | None = None
        self.settings: Settings | None = None

    @hookimpl
    def naiad_services(self, settings: "Settings") -> Sequence[Service]:
        """The service itself."""
        self.settings = settings
        return [self]

    async def start(self, server: Any) -> None:
        """Write it down."""
        self.events.append(f"start {self.name}")
        if self.failure is not None:
            raise self.failure

    async def stop(self, seconds: float) -> None:
        """Write it down."""
        self.events.append(f"stop {self.name}")
        if self.failure is not None:
            raise self.failure
