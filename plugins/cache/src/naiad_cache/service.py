"""The response cache of a server: opens the cache and makes the stage of each model version with `response_cache`."""

import hashlib
import logging
import os
from collections.abc import Mapping
from typing import Any

from naiad import __version__
from naiad.backend import ModelContext
from naiad.extend import StageContext
from naiad.server import ServerApi
from naiad_cache.opened import OpenedCache, open_cache
from naiad_cache.options import chosen_cache
from naiad_cache.stage import CacheStage
from naiad_config.fingerprints import Fingerprints
from naiad_config.normalisation import is_ensemble
from naiad_kit.metrics import MetricFamily

_logger = logging.getLogger("naiad.cache")


class CacheService:
    """The service of a server that has a response cache, or, where its options ask for none, could have one."""

    name = "cache"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._cache: OpenedCache | None = None

    async def start(self, server: ServerApi) -> None:
        """Open the cache that the options ask for.

        Raises InvalidArgumentError for options that are wrong, NotFoundError for a cache that no plugin offers, and
        PluginError when opening it fails.
        """
        chosen = chosen_cache(self._settings)
        if chosen is not None:
            self._cache = open_cache(chosen, server.cache_factory(chosen.name))

    async def stop(self, seconds: float) -> None:
        """Close the cache."""
        if self._cache is not None:
            await self._cache.close()

    def metrics(self) -> list[MetricFamily]:
        """What the cache has done and holds; nothing where the server has none."""
        return [] if self._cache is None else self._cache.metrics()

    def stage(self, context: StageContext) -> CacheStage | None:
        """A stage for that version, None where its configuration does not ask for one or there is no cache.

        Blocks while it reads the files of the model, if other servers find in the cache what is kept for it. What is
        kept for an ensemble is found by no other stage: its steps may be others by then.
        """
        config = context.model.config
        if config.response_cache is None or not config.response_cache.enable:
            return None
        cache = self._cache
        if cache is None:
            _logger.warning(
                "model '%s' asks for a response cache and the server has none; start it with --cache-config, as in "
                "--cache-config local,size=1048576",
                config.name,
            )
            return None
        generation = _content(context.model) if cache.shared and not is_ensemble(config) else os.urandom(16)
        return CacheStage(cache, context, generation)


def _content(context: ModelContext) -> bytes:
    """What servers that share a cache have in common when they serve the same: configuration and files of the model."""
    files = Fingerprints().of(context.model_directory)
    described = ascii((__version__, files, context.config, dict(context.settings)))
    return hashlib.blake2b(described.encode(), digest_size=16).digest()
