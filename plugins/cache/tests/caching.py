"""A server whose model asks for a cache."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from naiad import Server
from naiad.types import Response
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache

from .metered import running

CACHED = "response_cache { enable: true }"


@asynccontextmanager
async def caching(root: Path, backend: FakeBackend, cache: FakeCache, **options: Any) -> AsyncIterator[Server]:
    """A server of the model m, which asks for the cache."""
    backend.write(root, "m", CACHED + options.pop("config", ""))
    async with running(root, backend, cache, cache_config=("fake",), **options) as server:
        yield server


def values(response: Response) -> list[float]:
    return response.outputs["OUTPUT"].array.tolist()
