"""The one cache of a server: opened at its start, guarded against its failures, closed at its end."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from naiad._kernel.caching.options import chosen_cache
from naiad._kernel.telling import told
from naiad.cache import Cache, CachedResponse, CacheReport
from naiad.sparse_log import SparseLog

if TYPE_CHECKING:
    from naiad._kernel.plugins import PluginRegistry

_logger = logging.getLogger("naiad.cache")


class OpenedCache:
    """A cache by its name; what it raises is logged now and then, and a lookup that raised is a miss."""

    def __init__(self, name: str, cache: Cache) -> None:
        self.name = name
        self.shared = bool(cache.shared)
        self.largest = cache.largest
        self._cache = cache
        self._log = SparseLog(_logger)

    def lookup(self, key: bytes, found: Callable[[CachedResponse | None], None]) -> None:
        """As `Cache.lookup`."""
        try:
            self._cache.lookup(key, found)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and the model can answer without it
            self.complain("cache '%s' failed to look something up: %s", self.name, told(error))
            found(None)

    def insert(self, key: bytes, response: CachedResponse) -> None:
        """As `Cache.insert`."""
        try:
            self._cache.insert(key, response)
        except Exception as error:  # noqa: BLE001 - as above
            self.complain("cache '%s' failed to take a response: %s", self.name, told(error))

    def report(self) -> CacheReport:
        """As `Cache.report`."""
        try:
            return self._cache.report()
        except Exception as error:  # noqa: BLE001 - as above
            self.complain("cache '%s' failed to tell what it holds: %s", self.name, told(error))
            return CacheReport()

    def complain(self, message: str, *values: object) -> None:
        """Log a warning about the cache, if there was none within the last minute."""
        self._log.warning(message, *values)

    async def close(self) -> None:
        """Close it, on a thread."""
        try:
            await asyncio.to_thread(self._cache.close)
        except Exception:
            _logger.exception("closing cache '%s' failed", self.name)


def open_cache(registry: "PluginRegistry", settings: Mapping[str, Any]) -> OpenedCache | None:
    """The cache that the options ask for, None for none.

    Raises InvalidArgumentError for options that make no sense, NotFoundError for a cache that no plugin offers, and
    what opening it raises.
    """
    chosen = chosen_cache(settings)
    if settings["cache-directory"]:
        _logger.warning("--cache-directory is not used: caches are plugins that are installed with pip")
    if chosen is None:
        return None
    opened = OpenedCache(chosen.name, registry.cache(chosen.name).open(chosen.settings))
    _logger.info("responses of models with response_cache { enable: true } are kept in the cache '%s'", chosen.name)
    return opened
