"""The index and the statistics of several replicas as those of one server."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TypeVar

from naiad.reports import IndexEntry
from naiad_statistics.reports import BatchStatistics, Duration, MemoryUsage, ModelStatistics, ResponseStatistics

_T = TypeVar("_T")
_RANKS = ("READY", "LOADING", "UNLOADING", "UNAVAILABLE", "UNKNOWN", "")


def merged_statistics(replicas: Iterable[Sequence[ModelStatistics]]) -> list[ModelStatistics]:
    """The sums of all counters, by name and version; the last inference is the latest."""
    versions: dict[tuple[str, int], ModelStatistics] = {}
    for statistics in replicas:
        for each in statistics:
            key = (each.name, each.version)
            versions[key] = _sum(versions[key], each) if key in versions else each
    return [versions[key] for key in sorted(versions)]


def merged_index(replicas: Iterable[Sequence[IndexEntry]]) -> list[IndexEntry]:
    """Every model version once. One that only some replicas serve is READY, and says how many."""
    versions: dict[tuple[str, int], list[IndexEntry]] = {}
    for entries in replicas:
        for entry in entries:
            versions.setdefault((entry.name, entry.version), []).append(entry)
    loaded = {name for name, version in versions if version}
    merged = []
    for (name, version), entries in sorted(versions.items()):
        best = min(entries, key=lambda each: _RANKS.index(each.state) if each.state in _RANKS else len(_RANKS))
        ready = sum(each.state == best.state for each in entries)
        if not version and name in loaded:
            continue  # one replica has loaded the model, another has not yet
        reason = best.reason
        if ready < len(entries) and best.state:
            other = next((each.reason for each in entries if each.state != best.state and each.reason), "")
            reason = f"{best.state} on {ready} of {len(entries)} replicas" + (f": {other}" if other else "")
        merged.append(IndexEntry(name, version, best.state, reason))
    return merged


def _sum(one: ModelStatistics, other: ModelStatistics) -> ModelStatistics:
    def added(name: str) -> Duration:
        return _add(getattr(one, name), getattr(other, name))

    return ModelStatistics(
        name=one.name,
        version=one.version,
        last_inference=max(one.last_inference, other.last_inference),
        inference_count=one.inference_count + other.inference_count,
        execution_count=one.execution_count + other.execution_count,
        success=added("success"),
        fail=added("fail"),
        queue=added("queue"),
        compute_input=added("compute_input"),
        compute_infer=added("compute_infer"),
        compute_output=added("compute_output"),
        cache_hit=added("cache_hit"),
        cache_miss=added("cache_miss"),
        batch_stats=_by(lambda each: each.batch_size, _add_batches, (*one.batch_stats, *other.batch_stats)),
        memory_usage=_by(lambda each: (each.type, each.id), _add_memory, (*one.memory_usage, *other.memory_usage)),
        batch_reasons=dict(Counter(one.batch_reasons) + Counter(other.batch_reasons)),
        response_stats=_add_responses(one.response_stats, other.response_stats),
    )


def _add(one: Duration, other: Duration) -> Duration:
    return Duration(one.count + other.count, one.ns + other.ns)


def _by(key: Callable[[_T], object], add: Callable[[_T, _T], _T], every: Sequence[_T]) -> tuple[_T, ...]:
    """One of each key: the sum of all with it."""
    groups: dict[object, list[_T]] = {}
    for each in every:
        groups.setdefault(key(each), []).append(each)
    return tuple(reduce(add, same) for same in groups.values())


def _add_batches(one: BatchStatistics, other: BatchStatistics) -> BatchStatistics:
    return BatchStatistics(
        one.batch_size,
        _add(one.compute_input, other.compute_input),
        _add(one.compute_infer, other.compute_infer),
        _add(one.compute_output, other.compute_output),
    )


def _add_memory(one: MemoryUsage, other: MemoryUsage) -> MemoryUsage:
    return MemoryUsage(one.type, one.id, one.byte_size + other.byte_size)


def _add_responses(
    one: Mapping[str, ResponseStatistics], other: Mapping[str, ResponseStatistics]
) -> dict[str, ResponseStatistics]:
    names = ("compute_infer", "compute_output", "success", "fail", "empty_response", "cancel")
    none = ResponseStatistics()
    return {
        index: ResponseStatistics(
            *(_add(getattr(one.get(index, none), name), getattr(other.get(index, none), name)) for name in names)
        )
        for index in sorted({*one, *other}, key=lambda each: int(each) if each.isdigit() else 0)
    }
