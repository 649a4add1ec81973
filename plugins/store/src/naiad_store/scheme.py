"""The repository schemes of this plugin: what opens the URLs of stores, and the options of their cache."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from naiad.options import Option
from naiad_config.stores import RemoteRepository
from naiad_store.cache import ModelCache
from naiad_store.repository import StoreRepository
from naiad_store.sources import ObjectSource
from naiad_store.urls import StoreUrl

_FRESH_SECONDS = 5.0
"""A listing of all models that is not older is taken again: clients may ask for the index as often as they like."""


def _size(text: str) -> int:
    """A number of bytes, with K, M, G or T behind it for powers of 1024. Raises ValueError otherwise."""
    scale = "KMGT".find(text[-1:].upper()) + 1 if text else 0
    value: int = int(text[:-1] if scale else text) * 1024**scale
    if value < 0:
        raise ValueError(f"'{text}' is negative; write 0 or more")
    return value


OPTIONS = (
    Option("store-cache", "", "the folder for models that were downloaded from stores", metavar="DIR"),
    Option("store-cache-size", 0, "about the most bytes in that folder, as 200G; 0 is no limit", _size, "BYTES"),
)
"""The options of the plugin."""


class StoreScheme:
    """The repositories whose URLs begin with `s3`, `gs`, `as` or `hf`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, url: str, settings: Mapping[str, Any]) -> RemoteRepository:
        """The repository of that URL.

        Raises InvalidArgumentError for a URL or credentials of another form, and NotFoundError where the library for it
        is not installed.
        """
        parsed = StoreUrl.parse(url)
        root = settings["store-cache"] or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "naiad"
        cache = ModelCache(Path(root).absolute() / "store", settings["store-cache-size"])
        fresh = min(_FRESH_SECONDS, settings["repository-poll-secs"])
        return StoreRepository(parsed, _source(parsed), cache, fresh)


def _source(url: StoreUrl) -> ObjectSource:
    if url.scheme == "hf":
        from naiad_store.hub import HubObjects

        return HubObjects(url)
    from naiad_store.buckets import BucketObjects

    return BucketObjects.open(url)
