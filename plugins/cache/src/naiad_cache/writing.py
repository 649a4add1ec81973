"""The cache writer: inserts copies of models' responses into the cache, before callers can change the arrays."""

import asyncio
import functools
from time import monotonic_ns

import numpy as np

from naiad.types import Response
from naiad_cache.keys import LARGE
from naiad_cache.lookups import Lookup
from naiad_cache.opened import OpenedCache
from naiad_kit.caches import CachedResponse
from naiad_statistics.caches import CacheCounters
from naiad_tensors.tensors import Tensor

PATIENT_FOR = 2048
"""After this many misses of a model in a row, only one response in `KEPT_THEN` is inserted until the next hit."""
KEPT_THEN = 8
"""See `PATIENT_FOR`: requests that never repeat should neither cost 25 µs each, nor evict entries of other models."""


class CacheWriter:
    """Inserts the responses of the model `name` into a cache."""

    def __init__(self, cache: OpenedCache, name: str, counters: CacheCounters) -> None:
        self._cache = cache
        self._name = name
        self._counters = counters
        self._in_vain = 0
        self._loop = asyncio.get_running_loop()

    def keep(self, lookup: Lookup, outcome: Response) -> None:
        """Insert a copy of a response, before the caller owns its arrays.

        Errors and outputs outside host memory are not inserted. A thread makes large copies; the caller then gets
        read-only arrays.
        """
        if self._counters.misses_in_a_row > PATIENT_FOR:
            self._in_vain += 1
            if self._in_vain % KEPT_THEN:
                return
        if not lookup.key or outcome.error is not None or not outcome.outputs:
            return
        started_ns, byte_size = monotonic_ns(), 0
        for tensor in outcome.outputs.values():
            if not isinstance(tensor.payload, np.ndarray):
                return
            byte_size += tensor.payload.nbytes
        if byte_size > self._cache.largest:
            self._complain_of_size(byte_size)
        elif byte_size >= LARGE:
            outputs = list(map(_view_of, outcome.outputs.values()))
            threads = self._cache.threads
            copying = self._loop.run_in_executor(threads, CachedResponse.copied, outputs, outcome.parameters)
            copying.add_done_callback(functools.partial(self._copied, lookup, started_ns))
        else:
            self._insert(lookup, CachedResponse.of(outcome), started_ns)

    def _copied(self, lookup: Lookup, started_ns: int, copying: "asyncio.Future[CachedResponse]") -> None:
        if copying.cancelled() or copying.exception() is not None:
            self._cache.complain("a response of model '%s' could not be copied for the cache", self._name)
            return
        self._insert(lookup, copying.result(), started_ns)

    def _insert(self, lookup: Lookup, cached: CachedResponse, started_ns: int) -> None:
        if cached.byte_size > self._cache.largest:
            self._complain_of_size(cached.byte_size)
            return
        self._cache.insert(lookup.key, cached)
        insertion_ns = monotonic_ns() - started_ns
        self._counters.inserted(lookup.lookup_ns, insertion_ns)
        self._cache.times.insertion_ns += insertion_ns

    def _complain_of_size(self, byte_size: int) -> None:
        self._cache.complain(
            "a response of model '%s' has %d bytes and is not kept: cache '%s' takes up to %d",
            self._name,
            byte_size,
            self._cache.name,
            self._cache.largest,
        )


def _view_of(tensor: Tensor) -> Tensor:
    """A tensor over the same memory; both are read-only from here on."""
    view = tensor.array.view()
    view.flags.writeable = False
    tensor.payload = view
    return Tensor(tensor.name, tensor.datatype, tensor.shape, view)
