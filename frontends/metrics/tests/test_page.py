"""docs/metrics.md names every metric with its type, every option and every word of a metric, and no other."""

import re
from pathlib import Path

import pytest

from naiad_cache.metrics import CacheTimes, cache_metrics
from naiad_kit.caches import CacheReport
from naiad_kit.metrics import MetricFamily
from naiad_metrics.config import METRICS_OPTIONS
from naiad_metrics.families import FAMILIES, FamilyText
from naiad_metrics.latencies import BOUNDS, FIRST_RESPONSE_BOUNDS
from naiad_process_workers.resident_memory import ResidentMemoryService

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]


EVERY = (*FAMILIES, *cache_metrics("local", CacheReport(), 0, CacheTimes()), *ResidentMemoryService().metrics())


@pytest.mark.parametrize("family", EVERY, ids=lambda family: family.name)
def test_every_metric_has_a_row_that_tells_its_type(family: FamilyText | MetricFamily) -> None:
    (row,) = (row for row in ROWS if f"`{family.name}`" in row.split("|")[1])

    kind = row.split("|")[2].strip()
    if family.kind == "histogram" and len(row.split("|")) == 4:
        section = PAGE[: PAGE.index(row)].rpartition("\n## ")[2]
        assert section.startswith("Latencies\n\nThese histograms")
    else:
        assert kind == family.kind


def test_no_metric_is_named_that_is_not_there() -> None:
    named = set(re.findall(r"`((?:nv|naiad)_[a-z_]+)`", PAGE))

    assert named == {family.name for family in EVERY}


def test_every_option_and_every_reason_is_named() -> None:
    for option in METRICS_OPTIONS:
        assert f"`--{option.name}`" in PAGE
    for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER"):
        assert f"`{reason}`" in PAGE


def test_the_buckets_are_reported_as_they_are() -> None:
    assert f"{BOUNDS[0] * 1e6:.0f} µs to {BOUNDS[-1]:.0f} s" in PAGE
    first, *between, last = (f"{bound:.0f}" for bound in FIRST_RESPONSE_BOUNDS)
    assert f"the buckets are {', '.join([first, *between])} and {last}" in PAGE
