"""The server's response cache, and a stage for each model version that asks for it."""

import hashlib
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from naiad._kernel.caching.opened import OpenedCache, open_cache
from naiad._kernel.caching.stage import CacheStage
from naiad._kernel.repository import Fingerprints
from naiad._version import __version__
from naiad.backend import ModelContext
from naiad.extend import StageContext
from naiad_config.normalisation import is_ensemble

if TYPE_CHECKING:
    from naiad._kernel.plugins import PluginRegistry

_logger = logging.getLogger("naiad.cache")


class Caching:
    """Makes the stages of models that ask for the `cache` of a server; without one there are none."""

    def __init__(self, cache: OpenedCache | None = None) -> None:
        self.cache = cache

    def stage(self, context: StageContext) -> CacheStage | None:
        """A stage for that version, None where its configuration does not ask for one or there is no cache.

        Blocks while it reads the files of the model, if others find in the cache what is kept for it. What is kept for
        an ensemble is found by no other stage: its steps may be others by then.
        """
        config = context.model.config
        if config.response_cache is None or not config.response_cache.enable:
            return None
        if self.cache is None:
            _logger.warning(
                "model '%s' asks for a response cache and the server has none; start it with --cache-config, as in "
                "--cache-config local,size=1048576",
                config.name,
            )
            return None
        generation = _content(context.model) if self.cache.shared and not is_ensemble(config) else os.urandom(16)
        return CacheStage(self.cache, context, generation)

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
