"""Details of one model version as JSON: phases, batches, instances, memory, sequences, cache and resources."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from naiad.errors import NaiadError
from naiad.reports import IndexEntry, VersionReport
from naiad_config import ModelConfig
from naiad_dashboard.overview import rounded, row
from naiad_dashboard.readings import phases
from naiad_dashboard.records import LogLine, LogTail
from naiad_dashboard.sampler import Key, Sampler, Track
from naiad_kit.metrics import MODEL_PROCESS_MEMORY, MetricFamily, metrics_of_plugins
from naiad_statistics.reports import CacheUse, ModelStatistics

if TYPE_CHECKING:
    from naiad.server import ServerApi

_LINES = 30
_KEPT = 64


class Details:
    """Makes the details of versions; keeps the last busy time of those that were looked at."""

    def __init__(self, server: "ServerApi", sampler: Sampler, log: LogTail) -> None:
        self._server = server
        self._sampler = sampler
        self._log = log
        self._busy: dict[Key, tuple[float, int, float]] = {}

    def of(self, name: str, version: int) -> dict[str, Any]:
        """The details of a version; one that does not serve has its row and log lines alone."""
        entry = next((each for each in self._server.index() if (each.name, each.version) == (name, version)), None)
        track = self._sampler.tracks.get((name, version))
        if entry is None and track is None:
            entry = IndexEntry(name, version, reason="it is in no repository of this server")
        document: dict[str, Any] = {"row": row(name, version, entry, track), "log": self.log(name)}
        error = self._log.last_error(name)
        if error is not None:
            document["last_error"] = asdict(error) | {"cause": error.cause}
        return document | self._of_serving(track) if track is not None else document

    def log(self, model: str) -> list[dict[str, Any]]:
        """The last log lines of a model."""
        return [asdict(line) for line in self._log.last(_LINES, model)]

    def log_lines(self) -> list[LogLine]:
        """The last log lines of the server."""
        return self._log.last(_LINES)

    def _of_serving(self, track: Track) -> dict[str, Any]:
        report = track.report
        families = metrics_of_plugins(self._server)  # once: each reading looks at the processes of models
        statistics, processes = self._statistics(report), _process_memory(families, report)
        usages = [asdict(each) for each in statistics.memory_usage] if statistics else []
        if "" in processes:
            usages.append({"type": "of the process", "id": "", "byte_size": processes[""]})
        return {
            "phases": [
                {key: value if key == "name" else rounded(value) for key, value in asdict(each).items()}
                for each in phases(track.window, track.readings[-1])
            ],
            "batches": [{"size": size, "count": count} for size, count in sorted(_batch_sizes(report).items())],
            "reasons": dict(sorted(report.batch_reasons.items(), key=lambda pair: -pair[1])),
            "failures": {reason: count for reason, count in report.failures.items() if count},
            "instances": [asdict(each) | {"memory": processes.get(each.name)} for each in report.instances],
            "busy": rounded(self._busy_share(track, statistics)),
            "load_seconds": rounded(report.load_seconds),
            "memory": usages,
            "sequences": _sequences(report),
            "cache": _cache(report.cache),
            "limits": list(_limits(families, report.name)),
        }

    def _statistics(self, report: VersionReport) -> ModelStatistics | None:
        try:
            return next(iter(self._server.statistics(report.name, report.version)), None)
        except NaiadError:  # it was unloaded meanwhile
            return None

    def _busy_share(self, track: Track, statistics: ModelStatistics | None) -> float | None:
        """The share of the time since the last look for which the instances executed, 1 when all did all the time."""
        instances = len(track.report.instances)
        if statistics is None or not instances:
            return None
        key, at = (track.report.name, track.report.version), track.points[-1].at
        ended = sum(
            phase.ns
            for each in statistics.batch_stats
            for phase in (each.compute_input, each.compute_infer, each.compute_output)
        )
        under_way = sum(each.busy_seconds for each in track.report.instances)
        earlier = self._busy.get(key)
        if earlier is None or at - earlier[0] > 0:
            self._busy[key] = (at, ended, under_way)
            while len(self._busy) > _KEPT:
                del self._busy[next(iter(self._busy))]
        if earlier is None or at <= earlier[0] or ended < earlier[1]:
            return None
        executed = (ended - earlier[1]) / 1e9 + under_way - earlier[2]
        return min(1.0, max(0.0, executed / (at - earlier[0]) / instances))


def _limits(families: Iterable[MetricFamily], model: str) -> Iterator[dict[str, Any]]:
    """The gauges and counters of execution gates and services that name this model, or no model at all."""
    for family in families:
        for sample in family.samples if family.name != MODEL_PROCESS_MEMORY else ():
            labels = dict(sample.labels)
            if isinstance(sample.value, int | float) and isfinite(sample.value) and labels.pop("model", model) == model:
                text = ", ".join(f"{key}={value}" for key, value in labels.items())
                yield {"name": family.name, "help": family.help, "labels": text, "value": sample.value}


def _process_memory(families: Iterable[MetricFamily], report: VersionReport) -> dict[str, int]:
    """The bytes of the processes of an isolated version by instance; "" is a process of all instances."""
    sizes: dict[str, int] = {}
    for family in families:
        for sample in family.samples if family.name == MODEL_PROCESS_MEMORY else ():
            labels = dict(sample.labels)
            if (labels["model"], labels["version"]) == (report.name, str(report.version)):
                sizes[labels.get("instance", "")] = int(sample.value)  # type: ignore[arg-type]
    return sizes


def _batch_sizes(report: VersionReport) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for device in report.devices:
        for size, count in device.batch_sizes.items():
            sizes[size] = sizes.get(size, 0) + count
    return sizes


def _sequences(report: VersionReport) -> dict[str, Any] | None:
    if report.sequences is None:
        return None
    slots = sequence_slots(report.config, len(report.instances))
    return {"live": report.sequences.live, "backlog": report.sequences.backlog, "slots": slots}


def sequence_slots(config: ModelConfig, instances: int) -> int:
    """How many sequences the instances of a model take at a time."""
    batching = config.sequence_batching
    if batching is not None and batching.oldest is not None:
        return instances * batching.oldest.max_candidate_sequences
    return instances * max(1, config.max_batch_size)


def _cache(use: CacheUse | None) -> dict[str, Any] | None:
    if use is None:
        return None
    lookups = use.hits.count + use.misses.count
    return {
        "hits": use.hits.count,
        "misses": use.misses.count,
        "share": rounded(use.hits.count / lookups) if lookups else None,
        "hit_seconds": rounded(use.hits.ns / use.hits.count / 1e9) if use.hits.count else None,
    }
