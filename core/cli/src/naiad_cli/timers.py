"""Calls that an event loop repeats."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Timers(Protocol):
    """What is needed of an event loop."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> "Cancellable":
        """As `asyncio.AbstractEventLoop.call_later`."""
        ...


class Cancellable(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None:
        """Never fire."""
        ...


@contextmanager
def repeating(loop: Timers, seconds: float, call: Callable[[], None]) -> Iterator[None]:
    """Call that every so many seconds while the block runs."""
    timer: Cancellable

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(seconds, tick)
        call()

    timer = loop.call_later(seconds, tick)
    try:
        yield
    finally:
        timer.cancel()
