"""The statistics extension: what is counted, and that the counts agree with each other."""

from time import time
from typing import Any

import tritonclient.grpc as triton

from . import models
from .asking import ROW, A, sums, tensor
from .gates import Gate
from .running import Running, post

FAILS = """
from naiad_custom import FP32, Array, model

@model
def fails(x: Array[FP32, -1]) -> Array[FP32, -1]:
    raise ValueError("as it was asked to")
"""

STOPS = """
from collections.abc import Iterator

from naiad_custom import INT32, Array, model

@model
def stops(count: Array[INT32, 1]) -> Iterator[Array[INT32, 1]]:
    for _ in range(int(count[0])):
        yield count
    raise ValueError("as it was asked to")
"""


def counts(statistics: dict[str, Any]) -> dict[str, int]:
    return {name: each["count"] for name, each in statistics["inference_stats"].items()}


def test_requests_executions_and_inferences_are_counted(server: Running) -> None:
    before = time() * 1000
    with server.client() as client:
        client.infer("custom_add_sub", sums())
        client.infer("custom_add_sub", [tensor("A", A[:1]), tensor("B", A[:1])])
        (statistics,) = client.get_inference_statistics("custom_add_sub", "1")["model_stats"]

    assert (statistics["name"], statistics["version"]) == ("custom_add_sub", "1")
    assert (statistics["inference_count"], statistics["execution_count"]) == (3, 2)
    assert counts(statistics) == {
        "success": 2,
        "fail": 0,
        "queue": 2,
        "compute_input": 2,
        "compute_infer": 2,
        "compute_output": 2,
        "cache_hit": 0,
        "cache_miss": 0,
    }
    assert [each["batch_size"] for each in statistics["batch_stats"]] == [1, 2]
    assert before - 1 <= statistics["last_inference"] <= time() * 1000
    assert (statistics["memory_usage"], statistics["response_stats"]) == ([], {})


def test_the_phases_of_a_request_are_parts_of_its_time(server: Running) -> None:
    with server.client() as client:
        for _ in range(5):
            client.infer("triton_add_sub", sums())

    statistics = server.statistics("triton_add_sub")

    times = {name: each["ns"] for name, each in statistics["inference_stats"].items()}
    phases = times["compute_input"] + times["compute_infer"] + times["compute_output"]
    assert 0 < times["compute_infer"] <= phases
    assert times["queue"] + phases <= times["success"] < 60e9
    (batch,) = statistics["batch_stats"]
    assert (batch["batch_size"], batch["compute_infer"]) == (2, statistics["inference_stats"]["compute_infer"])


def test_a_batch_of_several_requests_is_one_execution(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "gathers", max_batch_size=8)
    server.load("gathers")

    with server.connections(5) as wires:
        wires[0].send(post("/v2/models/gathers/infer", ROW))
        gate.wait_until_entered()
        for wire in wires[1:]:
            wire.send(post("/v2/models/gathers/infer", ROW))
        server.read_all()
        gate.open()
        answers = [wire.answer() for wire in wires]

    assert [answer and answer.status for answer in answers] == [200] * 5
    statistics = server.statistics("gathers")
    assert statistics["inference_count"] == counts(statistics)["success"] == counts(statistics)["compute_infer"] == 5
    executed = {each["batch_size"]: each["compute_infer"]["count"] for each in statistics["batch_stats"]}
    assert executed == {1: 1, 4: 1}
    assert statistics["execution_count"] == 2
    server.unload("gathers")


def test_failures_are_counted_apart(server: Running) -> None:
    models.write(server.repository, "fails", FAILS)
    server.load("fails")

    answers = [server.infer("fails", 1), server.infer("fails", 1), server.infer("fails", 1, id=3)]

    assert [answer.status for answer in answers] == [500, 500, 400]
    statistics = server.statistics("fails")
    assert (counts(statistics)["success"], counts(statistics)["fail"]) == (0, 2)
    assert (statistics["inference_count"], statistics["execution_count"], statistics["last_inference"]) == (0, 0, 0)
    server.unload("fails")


def test_the_statistics_of_all_models_have_an_entry_for_each_that_is_ready(server: Running) -> None:
    with server.client() as client:
        everything = client.get_inference_statistics()["model_stats"]
        ready = [each["name"] for each in client.get_model_repository_index() if each["state"] == "READY"]

    assert [each["name"] for each in everything] == sorted(ready)


def test_a_model_that_is_loaded_anew_counts_from_zero(server: Running) -> None:
    server.infer("echo", 1)

    server.unload("echo")
    gone = server.ask("GET", "/v2/models/echo/stats")
    server.load("echo")

    assert (gone.status, "no available versions: unloaded" in gone.error) == (503, True)
    assert server.statistics("echo")["inference_count"] == 0


def test_responses_are_counted_by_their_places_alike_on_both_protocols(server: Running) -> None:
    with models.loaded(server, "stops", STOPS):
        for count in (2, 1):
            events = server.ask("POST", "/v2/models/stops/generate_stream", {"count": count}).body
            assert events.count(b'"output"') == count
        told = server.statistics("stops")["response_stats"]
        with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
            (over_grpc,) = client.get_inference_statistics("stops").model_stats

    counted = {place: {kind: each["count"] for kind, each in kinds.items()} for place, kinds in told.items()}
    kinds = ("compute_infer", "compute_output", "success", "fail", "empty_response", "cancel")
    assert counted == {
        "0": dict(zip(kinds, (2, 2, 2, 0, 0, 0), strict=True)),
        "1": dict(zip(kinds, (2, 2, 1, 1, 0, 0), strict=True)),
        "2": dict(zip(kinds, (1, 1, 0, 1, 0, 0), strict=True)),
    }
    assert told == {
        place: {kind: {"count": getattr(each, kind).count, "ns": getattr(each, kind).ns} for kind in kinds}
        for place, each in over_grpc.response_stats.items()
    }
