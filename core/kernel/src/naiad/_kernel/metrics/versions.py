"""What is told of one model version: its requests, its executions by GPU, its queue and its instances."""

import re
from collections import Counter
from typing import TYPE_CHECKING

from naiad._kernel.executions import Executions
from naiad._kernel.gpus import gpu_uuids
from naiad._kernel.metrics import families
from naiad._kernel.metrics.caches import add_cached
from naiad._kernel.metrics.collecting import Collection
from naiad._kernel.metrics.latencies import Latencies
from naiad._kernel.metrics.options import MetricsConfig
from naiad._kernel.metrics.snapshots import Distribution, LabelPairs, Quantiles
from naiad._kernel.statistics import VersionCounters
from naiad.reports import SequenceCounts

if TYPE_CHECKING:
    from naiad._kernel.served import ServedVersion

_STATES = ("READY", "STARTING", "DEAD")
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_NO_LETTER = re.compile("[^a-zA-Z0-9_]")


def add_version(collection: Collection, version: "ServedVersion", config: MetricsConfig) -> None:
    """Everything of that version."""
    labels = _labels(version)
    counters = version.counters
    waiting, outstanding = version.waiting, version.outstanding
    collection.add_all(families.WHOLE, labels, (waiting, counters.load_seconds, waiting, outstanding))
    _add_ends(collection, counters, labels)
    _add_instances(collection, version, labels)
    _add_sequences(collection, version, labels)
    if counters.cache is not None:
        add_cached(collection, counters.cache, labels, config)
    for device, executions in counters.by_device.items():
        _add_executions(collection, executions, _on_device(labels, device), config)


def _labels(version: "ServedVersion") -> LabelPairs:
    tags = {f"_{_NO_LETTER.sub('_', name)}": value for name, value in version.config.metric_tags.items()}
    return tuple(sorted({**tags, "model": version.name, "version": str(version.version)}.items()))


def _on_device(labels: LabelPairs, device: int) -> LabelPairs:
    uuids = gpu_uuids() if device >= 0 else ()
    uuid = uuids[device] if 0 <= device < len(uuids) else ""
    return (("gpu_uuid", uuid), *labels) if uuid else labels


def _add_ends(collection: Collection, counters: VersionCounters, labels: LabelPairs) -> None:
    for failure, count in counters.failures.items():
        collection.add(families.FAILURE, (*labels, ("reason", failure.value)), count)
    for state, count in (("waiting", counters.cancelled_waiting), ("executing", counters.cancelled_executing)):
        collection.add(families.CANCELLED, (*labels, ("state", state)), count)
    for reason, count in counters.reasons.items():
        collection.add(families.BATCHES_CLOSED, (*labels, ("reason", str(reason))), count)


def _add_instances(collection: Collection, version: "ServedVersion", labels: LabelPairs) -> None:
    times: Counter[tuple[str, int]] = Counter()
    for instance in version.instances():
        times[instance.name, instance.gpu] += 1
        which = times[instance.name, instance.gpu]  # a configuration may give several groups one name
        name = instance.name if which == 1 else f"{instance.name} ({which})"
        gpu = (("gpu", str(instance.gpu)),) if instance.gpu >= 0 else ()
        of_instance = (*labels, ("instance", name), *gpu)
        collection.add(families.INSTANCE_BUSY, of_instance, instance.busy_seconds)
        for state in _STATES:
            collection.add(families.INSTANCE_STATE, (*of_instance, ("state", state)), int(instance.state == state))


def _add_sequences(collection: Collection, version: "ServedVersion", labels: LabelPairs) -> None:
    sequences = getattr(version, "sequences", None)
    counts: SequenceCounts | None = None if sequences is None else sequences()
    if counts is None:
        return
    collection.add(families.SEQUENCES_LIVE, labels, counts.live)
    if counts.backlog is not None:
        collection.add(families.SEQUENCES_WAITING, labels, counts.backlog)


def _add_executions(collection: Collection, executions: Executions, labels: LabelPairs, config: MetricsConfig) -> None:
    values = (executions.successes, executions.inferences, executions.executions)
    collection.add_all(families.EXECUTED, labels, values)
    collection.add(families.BATCH_SIZE, labels, _batch_sizes(executions))
    phases = executions.phases
    sums = (executions.success_ns, executions.queue_ns, phases.input_ns, phases.infer_ns, phases.output_ns)
    if config.counter_latencies:
        collection.add_all(families.LATENCY_COUNTERS, labels, [nanoseconds // 1000 for nanoseconds in sums])
    if executions.latencies is not None:
        times = (executions.successes, executions.successes, phases.count, phases.count, phases.count)
        _add_latencies(collection, executions.latencies, labels, sums, times, config)


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
        told = tuple(zip(config.quantiles, [value / 1000 for value in values], strict=True))
        collection.add(family, labels, Quantiles(told, count, nanoseconds / 1000))


def _batch_sizes(executions: Executions) -> Distribution:
    """How many items the executions had, from the counters by batch size."""
    counts, total, bound = [0] * (len(_SIZES) + 1), 0, 0
    for size, counted in sorted(executions.by_batch_size.items()):
        while bound < len(_SIZES) and size > _SIZES[bound]:
            bound += 1
        counts[bound] += counted.count
        total += size * counted.count
    return Distribution(_SIZES, counts, total)
