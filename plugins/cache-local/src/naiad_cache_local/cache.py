"""LRU cache in the server's own memory, bounded by bytes."""

from collections import OrderedDict
from collections.abc import Callable

from naiad_kit.caches import CachedResponse, CacheReport


class LocalCache:
    """Holds responses of `capacity` bytes together. Every operation takes the same time, however many there are."""

    shared = False

    def __init__(self, capacity: int) -> None:
        self.largest: float = capacity
        self._capacity = capacity
        self._entries: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._byte_size = 0
        self._lookups = self._hits = self._insertions = self._evictions = self._failures = 0

    def lookup(self, key: bytes, on_response: Callable[[CachedResponse | None], None]) -> None:
        """Deliver the response at once; its entry becomes the most recently used."""
        self._lookups += 1
        response = self._entries.get(key)
        if response is not None:
            self._hits += 1
            self._entries.move_to_end(key)
        on_response(response)

    def insert(self, key: bytes, response: CachedResponse) -> None:
        """Keep the response in place of what was under its key, and drop the oldest until all have room."""
        if response.byte_size > self._capacity:
            self._failures += 1
            return
        entries = self._entries
        earlier = entries.pop(key, None)
        if earlier is not None:
            self._byte_size -= earlier.byte_size
        entries[key] = response
        self._byte_size += response.byte_size
        self._insertions += 1
        while self._byte_size > self._capacity:
            _, dropped = entries.popitem(last=False)
            self._byte_size -= dropped.byte_size
            self._evictions += 1

    def report(self) -> CacheReport:
        """The counters as they stand."""
        return CacheReport(
            lookups=self._lookups,
            hits=self._hits,
            insertions=self._insertions,
            evictions=self._evictions,
            failures=self._failures,
            entries=len(self._entries),
            byte_size=self._byte_size,
            capacity=self._capacity,
        )

    def close(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._byte_size = 0
