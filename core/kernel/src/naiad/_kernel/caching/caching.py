"""The server's cache and the fronts that it gets: one before each model version that asks for it."""

import hashlib
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from naiad._kernel.caching.opened import OpenedCache, open_cache
from naiad._kernel.caching.serving import CacheFront
from naiad._kernel.repository import Fingerprints
from naiad._kernel.threads import on_own_thread
from naiad._version import __version__
from naiad.backend import ModelContext
from naiad_config import ModelConfig

if TYPE_CHECKING:
    from naiad._kernel.metrics.options import MetricsConfig
    from naiad._kernel.plugins import PluginRegistry

_logger = logging.getLogger("naiad.cache")


class Cached(Protocol):
    """What a front may be put before: `cache` is that front, `generation` what tells this load from all others."""

    cache: CacheFront | None
    generation: bytes


class Caching:
    """Puts the `cache` of a server before its models; without one nothing is put anywhere."""

    def __init__(self, cache: OpenedCache | None = None) -> None:
        self.cache = cache

    async def attach(self, version: Cached, context: ModelContext, metrics: "MetricsConfig") -> None:
        """Put a front before a version that is being loaded, if its configuration asks for it."""
        version.generation = os.urandom(16)
        if _asks(context.config):
            if self.cache is not None and self.cache.shared:
                version.generation = await on_own_thread("naiad-fingerprint", _content, context)
            version.cache = self.front(context.config, context.version, version.generation, metrics)

    def front(
        self, config: ModelConfig, version: int, generation: bytes, metrics: "MetricsConfig"
    ) -> CacheFront | None:
        """A front for that version of a model, None where its configuration does not ask for one or there is no cache.

        What is kept for one `generation` is found only by another front of the same.
        """
        if not _asks(config):
            return None
        if self.cache is None:
            _logger.warning(
                "model '%s' asks for a response cache and the server has none; start it with --cache-config, as in "
                "--cache-config local,size=1048576",
                config.name,
            )
            return None
        ordered = config.dynamic_batching is not None and config.dynamic_batching.preserve_ordering
        summaries = metrics.enabled and metrics.summary_latencies
        return CacheFront(self.cache, config.name, version, generation, ordered=ordered, summaries=summaries)

    async def close(self) -> None:
        """Close the cache."""
        if self.cache is not None:
            await self.cache.close()


def open_caching(registry: "PluginRegistry", settings: Mapping[str, Any]) -> Caching:
    """With the cache that the options ask for. Raises what `open_cache` raises."""
    return Caching(open_cache(registry, settings))


def _content(context: ModelContext) -> bytes:
    """What servers that share a cache have in common when they serve the same: configuration and files of the model."""
    files = Fingerprints().of(context.model_directory)
    said = ascii((__version__, files, context.config, dict(context.settings)))
    return hashlib.blake2b(said.encode(), digest_size=16).digest()


def _asks(config: ModelConfig) -> bool:
    return config.response_cache is not None and config.response_cache.enable
