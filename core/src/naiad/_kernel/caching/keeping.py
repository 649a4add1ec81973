"""Keeping what models answer: a copy that is the cache's own, made before the caller may change the arrays."""

import asyncio
import functools
from collections.abc import Callable
from time import monotonic_ns

import numpy as np

from naiad._kernel.answers import Outcome
from naiad._kernel.caching.counters import CacheCounters
from naiad._kernel.caching.lookups import Lookup
from naiad._kernel.caching.opened import OpenedCache
from naiad.cache import CachedResponse
from naiad.errors import NaiadError
from naiad.types import Response

LARGE = 256 << 10
"""From so many bytes on, keys and copies are made on a thread: the event loop would stand still for 0.1 ms or more."""


class Keeper:
    """Hands answers of the model `name` to a cache."""

    def __init__(self, cache: OpenedCache, name: str, counters: CacheCounters) -> None:
        self._cache = cache
        self._name = name
        self.counters = counters

    def keeper(self, lookup: Lookup, outcome: Outcome) -> Callable[[], None] | None:
        """What is to be called when the caller has the outcome, so that the cache gets a copy of it; None for nothing.

        Errors, and what does not lie in host memory, are not kept. The copy is made before the caller has the arrays,
        which then are its own; a large one is made on a thread, and the caller gets arrays that cannot be written to.
        """
        if isinstance(outcome, NaiadError) or not lookup.key or not _can_be_kept(outcome):
            return None
        started_ns = monotonic_ns()
        byte_size = sum([tensor.array.nbytes for tensor in outcome.outputs.values()])
        if byte_size > self._cache.largest:
            self._complain_of_size(byte_size)
            return None
        if byte_size >= LARGE:
            for tensor in outcome.outputs.values():
                tensor.payload = tensor.array.view()
                tensor.payload.flags.writeable = False
            kept = Response(outcome.model_name, outcome.version, "", dict(outcome.outputs), outcome.parameters)
            return functools.partial(self._copy_later, lookup, kept, started_ns)
        cached = CachedResponse.of(outcome)
        copied_ns = monotonic_ns()
        return functools.partial(self._insert, lookup, cached, copied_ns - started_ns)

    def _copy_later(self, lookup: Lookup, outcome: Response, started_ns: int) -> None:
        copying = asyncio.get_running_loop().run_in_executor(None, CachedResponse.of, outcome)
        copying.add_done_callback(functools.partial(self._copied, lookup, started_ns))

    def _copied(self, lookup: Lookup, started_ns: int, copying: "asyncio.Future[CachedResponse]") -> None:
        if copying.cancelled() or copying.exception() is not None:
            self._cache.complain("a response of model '%s' could not be copied for the cache", self._name)
            return
        self._insert(lookup, copying.result(), monotonic_ns() - started_ns)

    def _insert(self, lookup: Lookup, cached: CachedResponse, copied_in_ns: int) -> None:
        started_ns = monotonic_ns()
        if cached.byte_size > self._cache.largest:
            self._complain_of_size(cached.byte_size)
            return
        self._cache.insert(lookup.key, cached)
        ended_ns = monotonic_ns()
        self.counters.inserted(ended_ns / 1e9, lookup.lookup_ns, copied_in_ns + ended_ns - started_ns)

    def _complain_of_size(self, byte_size: int) -> None:
        self._cache.complain(
            "a response of model '%s' has %d bytes and is not kept: cache '%s' takes up to %d",
            self._name,
            byte_size,
            self._cache.name,
            self._cache.largest,
        )


def _can_be_kept(response: Response) -> bool:
    return (
        response.final
        and response.error is None
        and len(response.outputs) > 0
        and all(isinstance(tensor.payload, np.ndarray) for tensor in response.outputs.values())
    )
