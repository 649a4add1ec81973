"""Counters, as messages."""

from naiad.backend import MemoryUsage
from naiad_grpc.service.statistics import StatisticsRpcs
from naiad_statistics.reports import BatchStatistics, Duration, ModelStatistics, ResponseStatistics

COUNTED = ModelStatistics(
    name="m",
    version=3,
    last_inference=1_700_000_000_000,
    inference_count=12,
    execution_count=4,
    success=Duration(1, 10),
    fail=Duration(2, 20),
    queue=Duration(3, 30),
    compute_input=Duration(4, 40),
    compute_infer=Duration(5, 50),
    compute_output=Duration(6, 60),
    cache_hit=Duration(7, 70),
    cache_miss=Duration(8, 80),
    batch_stats=(BatchStatistics(2, Duration(1, 2), Duration(3, 4), Duration(5, 6)),),
    memory_usage=(MemoryUsage("CPU", 0, 4096),),
    response_stats={"0": ResponseStatistics(success=Duration(9, 90), empty_response=Duration(1, 5))},
)


def pairs(message):
    return {field.name: (value.count, value.ns) for field, value in message.ListFields() if field.message_type}


def test_all_counters_are_reported(ask, server):
    server.counted = [COUNTED]

    (statistics,) = ask(StatisticsRpcs, "ModelStatistics", name="m", version="3").model_stats

    assert server.calls == [("m", 3)]
    assert (statistics.name, statistics.version, statistics.last_inference) == ("m", "3", 1_700_000_000_000)
    assert (statistics.inference_count, statistics.execution_count) == (12, 4)
    assert pairs(statistics.inference_stats) == {
        "success": (1, 10),
        "fail": (2, 20),
        "queue": (3, 30),
        "compute_input": (4, 40),
        "compute_infer": (5, 50),
        "compute_output": (6, 60),
        "cache_hit": (7, 70),
        "cache_miss": (8, 80),
    }
    assert statistics.batch_stats[0].batch_size == 2
    assert pairs(statistics.batch_stats[0]) == {
        "compute_input": (1, 2),
        "compute_infer": (3, 4),
        "compute_output": (5, 6),
    }
    assert [(each.type, each.id, each.byte_size) for each in statistics.memory_usage] == [("CPU", 0, 4096)]
    assert pairs(statistics.response_stats["0"])["success"] == (9, 90)
    assert pairs(statistics.response_stats["0"])["empty_response"] == (1, 5)


def test_no_name_asks_for_all_models(ask, server):
    server.counted = [COUNTED, COUNTED]

    assert len(ask(StatisticsRpcs, "ModelStatistics").model_stats) == 2
    assert server.calls == [("", 0)]
