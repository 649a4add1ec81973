"""Response caches: their factories, and the counters of a model version."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class CacheFactory(Protocol):
    """Opens response caches of one kind, for naiad-cache. `name` is the kind in `--cache-config` (`local`)."""

    name: str

    def open(self, settings: Mapping[str, str]) -> Any:
        """A `naiad_kit.caches.Cache` with these settings of `--cache-config`. Must not block.

        Raises InvalidArgumentError for a setting that is missing, unknown or invalid.
        """


class CacheCounters(Protocol):
    """Counts the hits and misses of one model version, in nanoseconds, for the statistics and metrics.

    `misses_in_a_row` are the misses since the last hit.
    """

    misses_in_a_row: int

    def hit(self, lookup_ns: int) -> None:
        """A lookup returned a response."""

    def missed(self, lookup_ns: int) -> None:
        """A lookup returned nothing."""

    def inserted(self, lookup_ns: int, insertion_ns: int) -> None:
        """The response to a request that was missed was inserted."""
