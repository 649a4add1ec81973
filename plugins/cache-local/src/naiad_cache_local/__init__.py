"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.cache import CacheFactory


@hookimpl
def naiad_caches() -> "Sequence[CacheFactory]":
    """The cache in the server's own memory."""
    from naiad_cache_local.factory import LocalCaching

    return [LocalCaching()]
