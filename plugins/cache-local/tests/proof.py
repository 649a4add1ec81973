"""Proof of naiad-cache-local alone beside the kernel, in an environment of its own."""

from naiad import PluginRegistry
from naiad_testing.caches import check_cache

check_cache(lambda: PluginRegistry.discover().caches()["local"].open({"size": "1000000"}))
