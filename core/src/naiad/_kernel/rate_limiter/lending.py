"""What stands between a called model and its caller where executions are limited: the caller lends while it waits."""

from collections.abc import Callable
from typing import Protocol

from naiad._kernel.answers import Outcome
from naiad._kernel.rate_limiter.rests import Rest


class Sink(Protocol):
    """Where the outcomes of a call go."""

    def put(self, outcome: Outcome) -> None:
        """Take an outcome."""
        ...


class LendingSink:
    """Passes outcomes on, in order, when the caller holds again what it lent. For the event loop's thread.

    `rest` begins a rest of the caller's; it rests from the first call of `wait` on.
    """

    def __init__(self, sink: Sink, rest: Callable[[], Rest]) -> None:
        self._sink = sink
        self._begin_rest = rest
        self._rest: Rest | None = None
        self._held: list[Outcome] | None = None

    def wait(self) -> None:
        """The caller waits for the next outcome."""
        if self._rest is None and self._held is None:
            self._rest = self._begin_rest()

    def put(self, outcome: Outcome) -> None:
        """Take an outcome."""
        if self._held is not None:  # the caller waits to go on with an earlier one
            self._held.append(outcome)
            return
        if self._rest is None:
            self._sink.put(outcome)
            return
        self._held = [outcome]
        self._wake()

    def end(self) -> None:
        """The caller waits no more, although there is no outcome; harmless after the last one."""
        if self._rest is not None:
            self._held = []
            self._wake()

    def _wake(self) -> None:
        rest, self._rest = self._rest, None
        if rest is not None:
            rest.over(self._go_on)

    def _go_on(self) -> None:
        held, self._held = self._held or [], None
        for outcome in held:
            self._sink.put(outcome)
