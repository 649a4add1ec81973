"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import RequestStage, Service, StageContext
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """Which cache keeps responses, and its settings."""
    from naiad_cache.options import CACHE_OPTIONS

    return CACHE_OPTIONS


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """The response cache of the server."""
    from naiad_cache.service import CacheService

    return [CacheService(settings)]


@hookimpl
def naiad_stages(context: "StageContext") -> "Sequence[RequestStage]":
    """The stage of a model that asks for the cache."""
    from naiad_cache.service import CacheService

    stage = context.service(CacheService).stage(context)
    return [] if stage is None else [stage]
