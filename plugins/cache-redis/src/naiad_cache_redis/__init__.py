"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.cache import CacheFactory


@hookimpl
def naiad_caches() -> "Sequence[CacheFactory]":
    """The cache in a Redis server."""
    from naiad_cache_redis.factory import RedisCaching

    return [RedisCaching()]
