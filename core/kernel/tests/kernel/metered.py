"""Servers with the metrics service, in the event loop of a test."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_metrics
from naiad import Server
from naiad_testing import in_loop
from naiad_testing.serving import without_frontends

METRICS = without_frontends(naiad_metrics)


def running(root: Path | Sequence[Path], *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with the metrics service."""
    return in_loop.running(root, *plugins, METRICS, **options)
