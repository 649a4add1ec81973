"""The factory of a kind of response cache, which a plugin of naiad-cache offers."""

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
