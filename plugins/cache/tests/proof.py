"""Proof of naiad-cache alone beside the kernel, in an environment of its own."""

import asyncio
from pathlib import Path

import naiad_cache
from naiad import Server
from naiad_cache.service import CacheService
from naiad_testing.caches import FakeCache


async def serve():
    plugins = [naiad_cache, FakeCache()]
    async with Server(model_repository=["models"], plugins=plugins, options={"cache-config": ("fake",)}) as server:
        return server.service(CacheService).metrics()


Path("models").mkdir()
names = [family.name for family in asyncio.run(serve())]
assert "naiad_cache_lookups_total" in names, names
