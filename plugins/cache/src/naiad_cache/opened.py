"""Guarded cache: the open cache of a server; its errors are logged and count as misses."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from naiad.cache import CacheFactory
from naiad.errors import NaiadError, PluginError
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.threads import on_own_thread
from naiad_cache.breaker import Breaker
from naiad_cache.metrics import CacheTimes, cache_metrics
from naiad_cache.options import ChosenCache
from naiad_kit.caches import Cache, CachedResponse, CacheReport
from naiad_kit.metrics import MetricFamily
from naiad_kit.sparse_log import SparseLog

_logger = logging.getLogger("naiad.cache")

_THREADS = 2


class OpenedCache:
    """A cache by its name; what it raises is logged now and then, and a lookup that raised is a miss.

    `threads` make the keys of large requests and copy large answers, so that these wait for no other kind of work. They
    end with this object.
    """

    def __init__(self, name: str, cache: Cache) -> None:
        self.name = name
        self.shared = bool(cache.shared)
        self.largest = cache.largest
        self.breaker = Breaker()
        self.times = CacheTimes()
        self.threads = ThreadPoolExecutor(_THREADS, "naiad-cache")
        self._cache = cache
        self._log = SparseLog(_logger)

    def timed_out(self, started: float, now: float) -> None:
        """A lookup that began at `started` has no answer."""
        pause = self.breaker.timed_out(started, now)
        if pause:
            _logger.warning(
                "cache '%s' has not answered %d lookups in a row; requests go past it for %g s",
                self.name,
                self.breaker.timeouts,
                pause,
            )

    def answered(self) -> None:
        """A lookup was answered in time, on any thread."""
        if self.breaker.answered():
            _logger.info(
                "cache '%s' answers again; requests that went past it so far: %d", self.name, self.breaker.skipped
            )

    def lookup(self, key: bytes, on_response: Callable[[CachedResponse | None], None]) -> None:
        """As `Cache.lookup`."""
        try:
            self._cache.lookup(key, on_response)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, and the model can answer without
            raise_interrupt(error)
            self.complain("cache '%s' failed to look something up: %s", self.name, describe_error(error))
            on_response(None)

    def insert(self, key: bytes, response: CachedResponse) -> None:
        """As `Cache.insert`."""
        try:
            self._cache.insert(key, response)
        except BaseException as error:  # noqa: BLE001 - as above
            raise_interrupt(error)
            self.complain("cache '%s' failed to take a response: %s", self.name, describe_error(error))

    def report(self) -> CacheReport:
        """As `Cache.report`."""
        try:
            return self._cache.report()
        except BaseException as error:  # noqa: BLE001 - as above
            raise_interrupt(error)
            self.complain("cache '%s' failed to report what it holds: %s", self.name, describe_error(error))
            return CacheReport()

    def metrics(self) -> list[MetricFamily]:
        """What it did, and what it holds."""
        return cache_metrics(self.name, self.report(), self.breaker.skipped, self.times)

    def complain(self, message: str, *values: object) -> None:
        """Log a warning about the cache, if there was none within the last minute."""
        self._log.warning(message, *values)

    async def close(self) -> None:
        """Close it, on a thread of its own."""
        try:
            await on_own_thread("naiad-close-cache", self._cache.close)
        except Exception:
            _logger.exception("closing cache '%s' failed", self.name)


def open_cache(chosen: ChosenCache, factory: CacheFactory) -> OpenedCache:
    """Open the chosen cache. Raises what its factory raises, as PluginError when that is no NaiadError."""
    try:
        opened = OpenedCache(chosen.name, factory.open(chosen.settings))
    except NaiadError:
        raise
    except Exception as error:
        _logger.debug("cache '%s' cannot be opened", chosen.name, exc_info=True)
        raise PluginError(
            f"cache '{chosen.name}' cannot be opened: {describe_error(error)}; check its settings in --cache-config"
        ) from error
    _logger.info("responses of models with response_cache { enable: true } are kept in the cache '%s'", chosen.name)
    return opened
