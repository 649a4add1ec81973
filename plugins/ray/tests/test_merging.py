"""The index and the statistics of several replicas as those of one server."""

from naiad.reports import IndexEntry
from naiad_ray.merging import merged_index, merged_statistics
from naiad_statistics.reports import BatchStatistics, Duration, MemoryUsage, ModelStatistics, ResponseStatistics


def statistics(count: int, name: str = "m", version: int = 1, sizes: tuple[int, ...] = (1,)) -> ModelStatistics:
    each = Duration(count, 10 * count)
    return ModelStatistics(
        name,
        version,
        count,
        count,
        count,
        *[each] * 8,
        batch_stats=tuple(BatchStatistics(size, each, each, each) for size in sizes),
        memory_usage=(MemoryUsage("CPU", 0, 100),),
        batch_reasons={"full": count},
        response_stats={"0": ResponseStatistics(success=each)},
    )


def test_the_counters_of_replicas_are_added() -> None:
    (merged,) = merged_statistics([[statistics(2, sizes=(1, 4))], [statistics(3, sizes=(4, 8))]])

    assert (merged.inference_count, merged.execution_count, merged.last_inference) == (5, 5, 3)
    assert merged.success == merged.cache_miss == Duration(5, 50)
    assert [(each.batch_size, each.compute_infer.count) for each in merged.batch_stats] == [(1, 2), (4, 5), (8, 3)]
    assert merged.memory_usage == (MemoryUsage("CPU", 0, 200),)
    assert merged.batch_reasons == {"full": 5}
    assert merged.response_stats["0"].success == Duration(5, 50)


def test_models_and_versions_are_counted_apart() -> None:
    merged = merged_statistics([[statistics(1, "b"), statistics(2, "a", 2)], [statistics(4, "a", 1)]])

    assert [(each.name, each.version, each.inference_count) for each in merged] == [
        ("a", 1, 4),
        ("a", 2, 2),
        ("b", 1, 1),
    ]


def test_a_model_that_all_replicas_serve_is_ready() -> None:
    ready = IndexEntry("m", 1, "READY")

    assert merged_index([[ready], [ready]]) == [ready]


def test_a_model_that_only_some_serve_is_ready_and_says_on_how_many() -> None:
    entries = [[IndexEntry("m", 1, "READY")], [IndexEntry("m", 1, "UNAVAILABLE", "no memory")]]

    assert merged_index(entries) == [IndexEntry("m", 1, "READY", "READY on 1 of 2 replicas: no memory")]


def test_a_model_that_a_replica_has_not_loaded_yet_is_named_once() -> None:
    assert merged_index([[IndexEntry("m", 1, "READY")], [IndexEntry("m")]]) == [IndexEntry("m", 1, "READY")]


def test_a_model_that_none_has_loaded_is_named() -> None:
    assert merged_index([[IndexEntry("m")], [IndexEntry("m")]]) == [IndexEntry("m")]
