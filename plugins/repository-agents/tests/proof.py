"""Proof of naiad-repository-agents alone beside the kernel, in an environment of its own."""

import hashlib
import tempfile
from pathlib import Path

from naiad import PluginRegistry
from naiad.options import Settings
from naiad.repositories import GuardedModel

registry = PluginRegistry.discover()
settings = Settings(registry.options(), {})
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "weights").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    model = GuardedModel("m", Path(folder), {"SHA256:weights": digest}, settings)
    with registry.repository_agents()["checksum"].guard(model) as directory:
        assert directory == Path(folder)
