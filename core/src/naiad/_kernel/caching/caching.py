"""The server's cache and the fronts that it gets: one before each model version that asks for it."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from naiad import __version__
from naiad._kernel.caching.opened import OpenedCache, open_cache
from naiad._kernel.caching.serving import CacheFront
from naiad._kernel.repository import Fingerprints
from naiad.backend import ModelContext
from naiad.config import ModelConfig

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

    async def attach(
        self, version: Cached, context: ModelContext, metrics: "MetricsConfig", epoch: Callable[[], bytes] = bytes
    ) -> None:
        """Put a front before a version that is being loaded, if its configuration asks for it.

        `epoch` tells the states of what the version's answers depend on besides: it is a part of every key.
        """
        config, cache = context.config, self.cache
        version.generation = os.urandom(16)
        if config.response_cache is None or not config.response_cache.enable:
            return
        if cache is None:
            _logger.warning(
                "model '%s' asks for a response cache and the server has none; start it with --cache-config, as in "
                "--cache-config local,size=1048576",
                config.name,
            )
            return
        if cache.shared:
            version.generation = await asyncio.to_thread(_content, context)
        version.cache = CacheFront(
            cache,
            config.name,
            context.version,
            version.generation,
            ordered=_keeps_order(config),
            summaries=metrics.enabled and metrics.summary_latencies,
            epoch=epoch,
        )

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


def _keeps_order(config: ModelConfig) -> bool:
    return config.dynamic_batching is not None and config.dynamic_batching.preserve_ordering
