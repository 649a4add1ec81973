"""The metrics of one model version: its requests, its executions by GPU, its queue, instances and cache."""

from collections import Counter
from collections.abc import Sequence

from naiad.reports import VersionReport
from naiad_kit.metrics import Distribution, LabelPairs, Quantiles, model_labels
from naiad_metrics import families
from naiad_metrics.collection import Collection
from naiad_metrics.config import MetricsConfig
from naiad_metrics.latencies import Latencies
from naiad_metrics.nvml import gpu_uuids
from naiad_metrics.observers import Durations
from naiad_statistics.observers import DurationObserver
from naiad_statistics.reports import CacheUse, DeviceReport

_STATES = ("READY", "STARTING", "DEAD")
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def add_version(collection: Collection, version: VersionReport, config: MetricsConfig) -> None:
    """Everything of that version."""
    labels = model_labels(version.config, version.version)
    waiting, outstanding = version.waiting, version.outstanding
    collection.add_all(families.WHOLE, labels, (waiting, version.load_seconds, waiting, outstanding))
    _add_ends(collection, version, labels)
    _add_instances(collection, version, labels)
    _add_sequences(collection, version, labels)
    if version.cache is not None:
        _add_cache(collection, version.cache, labels, config)
    for executions in version.devices:
        _add_executions(collection, executions, _on_device(labels, executions.device), config)


def _on_device(labels: LabelPairs, device: int) -> LabelPairs:
    uuids = gpu_uuids() if device >= 0 else ()
    uuid = uuids[device] if 0 <= device < len(uuids) else ""
    return (("gpu_uuid", uuid), *labels) if uuid else labels


def _add_ends(collection: Collection, version: VersionReport, labels: LabelPairs) -> None:
    for reason, count in version.failures.items():
        collection.add(families.FAILURE, (*labels, ("reason", reason)), count)
    for state, count in (("waiting", version.cancelled_waiting), ("executing", version.cancelled_executing)):
        collection.add(families.CANCELLED, (*labels, ("state", state)), count)
    for reason, count in version.batch_reasons.items():
        collection.add(families.BATCHES_CLOSED, (*labels, ("reason", reason)), count)


def _add_instances(collection: Collection, version: VersionReport, labels: LabelPairs) -> None:
    times: Counter[tuple[str, int]] = Counter()
    for instance in version.instances:
        times[instance.name, instance.gpu] += 1
        which = times[instance.name, instance.gpu]  # a configuration may give several groups one name
        name = instance.name if which == 1 else f"{instance.name} ({which})"
        gpu = (("gpu", str(instance.gpu)),) if instance.gpu >= 0 else ()
        of_instance = (*labels, ("instance", name), *gpu)
        collection.add(families.INSTANCE_BUSY, of_instance, instance.busy_seconds)
        for state in _STATES:
            collection.add(families.INSTANCE_STATE, (*of_instance, ("state", state)), int(instance.state == state))


def _add_sequences(collection: Collection, version: VersionReport, labels: LabelPairs) -> None:
    sequences = version.sequences
    if sequences is not None:
        collection.add_all(
            (families.SEQUENCES_LIVE, families.SEQUENCES_WAITING), labels, (sequences.live, sequences.backlog)
        )


def _add_executions(
    collection: Collection, executions: DeviceReport, labels: LabelPairs, config: MetricsConfig
) -> None:
    values = (executions.requests, executions.inferences, executions.executions)
    collection.add_all(families.EXECUTED, labels, values)
    collection.add(families.BATCH_SIZE, labels, _batch_sizes(executions))
    sums = (executions.success_ns, executions.queue_ns, *(phase.ns for phase in executions.compute))
    if config.counter_latencies:
        collection.add_all(families.LATENCY_COUNTERS, labels, [nanoseconds // 1000 for nanoseconds in sums])
    if isinstance(executions.observer, Latencies):
        times = (executions.requests, executions.requests, *(phase.count for phase in executions.compute))
        _add_latencies(collection, executions.observer, labels, sums, times, config)


def _add_latencies(
    collection: Collection,
    latencies: Latencies,
    labels: LabelPairs,
    sums: tuple[int, ...],
    times: tuple[int, ...],
    config: MetricsConfig,
) -> None:
    histograms = [each.snapshot(ns) for each, ns in zip(latencies.histograms, sums, strict=True)]
    collection.add_all(families.LATENCY_HISTOGRAMS, labels, histograms)
    first = latencies.first_response
    if first is not None:
        collection.add(families.FIRST_RESPONSE, labels, first.snapshot(latencies.first_response_ns))
    quantiles = latencies.quantiles(config.quantiles)
    for family, values, nanoseconds, count in zip(families.LATENCY_SUMMARIES, quantiles, sums, times, strict=False):
        collection.add(family, labels, Quantiles(_microseconds(values, config), count, nanoseconds / 1000))


def _batch_sizes(executions: DeviceReport) -> Distribution:
    """How many items the executions had, from the counters by batch size."""
    counts, total, bound = [0] * (len(_SIZES) + 1), 0, 0
    for size, times in sorted(executions.batch_sizes.items()):
        while bound < len(_SIZES) and size > _SIZES[bound]:
            bound += 1
        counts[bound] += times
        total += size * times
    return Distribution(_SIZES, counts, total)


def _add_cache(collection: Collection, cache: CacheUse, labels: LabelPairs, config: MetricsConfig) -> None:
    lookups = (cache.hits, cache.misses)
    counts, durations = families.CACHE_COUNTERS[:2], families.CACHE_COUNTERS[2:]
    collection.add_all(counts, labels, [lookup.count for lookup in lookups])
    if config.counter_latencies:
        collection.add_all(durations, labels, [lookup.ns // 1000 for lookup in lookups])
    observers: tuple[DurationObserver | None, ...] = (cache.hit_times, cache.miss_times)
    for family, observer, lookup in zip(families.CACHE_SUMMARIES, observers, lookups, strict=True):
        if isinstance(observer, Durations):
            values = _microseconds(observer.quantiles(config.quantiles), config)
            collection.add(family, labels, Quantiles(values, lookup.count, lookup.ns // 1000))


def _microseconds(nanoseconds: Sequence[float], config: MetricsConfig) -> tuple[tuple[float, float], ...]:
    """The values by quantile."""
    return tuple(zip(config.quantiles, [value / 1000 for value in nanoseconds], strict=True))
