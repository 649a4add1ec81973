"""Factory of the local cache: `--cache-config local,size=BYTES`."""

import logging
from collections.abc import Mapping

from naiad.errors import UsageError
from naiad_cache_local.cache import LocalCache
from naiad_kit.caches import check_settings

_logger = logging.getLogger("naiad.cache")

_LEAST = 1024


class LocalCaching:
    """Opens a `LocalCache` of `size` bytes."""

    name = "local"

    def open(self, settings: Mapping[str, str]) -> LocalCache:
        """An empty cache. Raises UsageError without a size above 0."""
        check_settings(self.name, settings, ("size",))
        text = settings.get("size", "")
        try:
            size = int(text)
        except ValueError:
            message = f"'{text}' is not" if text else "give it"
            raise UsageError(
                f"cache 'local': {message} a size in bytes, as in --cache-config local,size=1048576"
            ) from None
        if size < 1:
            raise UsageError(f"cache 'local': the size must be greater than 0, not {size}")
        if size < _LEAST:
            _logger.warning("cache 'local': %d bytes hold hardly any response; give it %d at least", size, _LEAST)
        return LocalCache(size)
