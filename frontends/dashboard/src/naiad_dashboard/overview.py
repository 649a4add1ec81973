"""Overview of all models as JSON: one row for each version of each model, with its figures now."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from naiad_config import ModelConfig
from naiad_dashboard.readings import Point
from naiad_dashboard.sampler import Sampler, Track

if TYPE_CHECKING:
    from naiad.reports import IndexEntry
    from naiad.server import ServerApi

_SPARK = 60
"""The points of a spark line."""


def rows(server: "ServerApi", sampler: Sampler) -> list[dict[str, Any]]:
    """One row a version, by name; versions that do not serve have their state and reason alone."""
    entries = {(entry.name, entry.version): entry for entry in server.index()}
    keys = sorted({*entries, *sampler.tracks})
    return [row(key[0], key[1], entries.get(key), sampler.tracks.get(key)) for key in keys]


def row(name: str, version: int, entry: "IndexEntry | None", track: Track | None) -> dict[str, Any]:
    """The row of one version."""
    state, reason = (entry.state, entry.reason) if entry else ("READY", "")
    document: dict[str, Any] = {
        "model": name,
        "version": version,
        "state": state or "UNLOADED",
        "reason": reason,
        "kind": "",
    }
    if track is None:
        return document
    report, last = track.report, track.points[-1]
    ready = sum(instance.state == "READY" for instance in report.instances)
    dead = [each.reason for each in report.instances if each.state == "DEAD" and each.reason]
    return document | {
        "reason": "; ".join(filter(None, [reason, *dead[:1]])),
        "kind": kind_of(report.config),
        "instances": f"{ready}/{len(report.instances)}" if report.instances else "–",
        "requests": track.readings[-1].requests,
        "failures": track.readings[-1].failures,
        "spark": [rounded(each.rate) for each in list(track.points)[-_SPARK:]],
        **figures(last),
    }


def figures(last: Point) -> dict[str, Any]:
    """The figures of one point: rates a second, latencies in seconds."""
    return {
        "rate": rounded(last.rate),
        "errors": rounded(last.errors),
        "p50": rounded(last.p50),
        "p99": rounded(last.p99),
        "queue": last.queue,
        "in_flight": last.in_flight,
        "batch": rounded(last.batch),
    }


def history(points: Iterable[Point]) -> dict[str, list[Any]]:
    """Points as columns, `ago` in seconds before the newest."""
    every = list(points)
    newest = every[-1].at if every else 0.0
    columns: dict[str, list[Any]] = {"ago": [round(newest - each.at, 1) for each in every]}
    for name in ("rate", "errors", "p50", "p99", "queue", "in_flight", "batch"):
        columns[name] = [rounded(getattr(each, name)) for each in every]
    return columns


def kind_of(config: ModelConfig) -> str:
    """What a model is, in a word or two: its backend or `ensemble`."""
    if config.ensemble_scheduling is not None:
        return "ensemble"
    return config.backend or config.platform


def rounded(value: float | None) -> float | None:
    """Four significant digits, which a page shows three of."""
    return None if value is None else float(f"{value:.4g}")
