"""Proof of naiad-store alone beside the kernel, in an environment of its own."""

from naiad import PluginRegistry
from naiad.options import Settings

registry = PluginRegistry.discover()
repository = registry.repository_scheme("s3").open(
    "s3://localhost:9000/bucket/models", Settings(registry.options(), {})
)
assert str(repository) == "s3://localhost:9000/bucket/models"
