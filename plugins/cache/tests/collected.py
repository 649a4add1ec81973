"""Servers with the metrics service, and their metrics as tests look at them: by name and labels."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import naiad_metrics
from naiad import Server
from naiad_kit.metrics import Distribution, MetricFamily, MetricsApi, Quantiles
from naiad_testing.serving import without_frontends

from . import serving

ONE = frozenset({("model", "m"), ("version", "1")})
Value = float | Distribution | Quantiles
Values = dict[str, dict[frozenset[tuple[str, str]], Value]]


METRICS = without_frontends(naiad_metrics)


@asynccontextmanager
async def running(root: Path | Sequence[Path], *plugins: object, **options: Any) -> AsyncIterator[Server]:
    """As `serving.running`, with the metrics service."""
    async with serving.running(root, *plugins, METRICS, **options) as server:
        yield server


def collect(server: Server) -> list[MetricFamily]:
    """Every metric as it stands."""
    return server.service(MetricsApi).collect()


def values_of(server: Server) -> Values:
    """Every metric value by name and labels; none may occur twice."""
    collected = collect(server)
    values = {family.name: {frozenset(each.labels): each.value for each in family.samples} for family in collected}
    assert len(values) == len(collected)
    assert sum(map(len, values.values())) == sum(len(family.samples) for family in collected)
    return values


def with_reason(reason: str) -> frozenset[tuple[str, str]]:
    return ONE | {("reason", reason)}
