"""Live streams: server-sent events once a second, each rendered once for all viewers of the same view."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from naiad_dashboard.sampler import Sampler

Make = Callable[[bool], Any]
"""Makes the document of a view; the bool says that it is the first of a stream, with the history."""

_KEPT = 32


class Streams:
    """The streams of all views. Documents are made once a sample and view."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._made_at = -1
        self._events: dict[tuple[str, bool], bytes] = {}

    async def events(self, view: str, make: Make) -> AsyncGenerator[bytes, None]:
        """The events of a stream: the first with the history, each further one with the figures of its second."""
        yield b"retry: 2000\n\n"
        first = True
        async with aclosing(self._sampler.watch()) as samples:
            async for _ in samples:
                yield self._event(view, first, make)
                first = False
        yield b"event: end\ndata: {}\n\n"

    def _event(self, view: str, first: bool, make: Make) -> bytes:
        if self._made_at != self._sampler.samples or len(self._events) > _KEPT:
            self._made_at, self._events = self._sampler.samples, {}
        key = (view, first)
        event = self._events.get(key)
        if event is None:
            text = json.dumps(make(first), separators=(",", ":"), allow_nan=False)
            event = self._events[key] = f"event: {'first' if first else 'next'}\ndata: {text}\n\n".encode()
        return event
