"""Servers with naiad-cache and the metrics service, in the event loop of a test."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_metrics
from naiad import Server
from naiad_testing.serving import without_frontends

from . import serving

METRICS = without_frontends(naiad_metrics)


def running(root: Path, *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with the metrics service."""
    return serving.running(root, *plugins, METRICS, **options)
