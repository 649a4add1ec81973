"""Behaviours of reports: health, metadata, configurations, statistics, and the index of the repository."""

from time import time

import pytest

from naiad import __version__
from naiad_testing.frontends.calls import Call, Input, RefusedError
from naiad_testing.frontends.inference import SUMS, A, counted
from naiad_testing.frontends.stage import Stage
from naiad_testing.frontends.table import Table

REPORTS = Table()


@REPORTS.behaviour
def a_server_and_its_models_are_live_and_ready(stage: Stage) -> None:
    adapter = stage.shared.adapter

    assert (adapter.live(), adapter.ready(), adapter.model_ready("add_sub"), adapter.model_ready("add_sub", "1")) == (
        True,
    ) * 4
    assert (adapter.model_ready("add_sub", "2"), adapter.model_ready("dream")) == (False, False)


@REPORTS.behaviour
def a_model_whose_instance_is_not_ready_is_not_ready(stage: Stage) -> None:
    with stage.serving() as served:
        served.backend.not_ready = "it is warming up"

        assert (served.adapter.live(), served.adapter.model_ready("add_sub")) == (True, False)


@REPORTS.behaviour
def a_server_says_its_name_version_and_extensions(stage: Stage) -> None:
    metadata = stage.shared.adapter.server_metadata()

    assert (metadata["name"], metadata["version"]) == ("naiad", __version__)
    assert {"classification", "model_repository", "statistics", "system_shared_memory", "trace"} <= set(
        metadata["extensions"]
    )


@REPORTS.cases({"of the model": ("",), "of its version": ("1",)})
def a_model_says_what_it_takes_and_gives(stage: Stage, version: str) -> None:
    metadata = stage.shared.adapter.model_metadata("add_sub", version)

    assert (metadata["name"], metadata["versions"], metadata["platform"]) == ("add_sub", ["1"], "suite")
    for side, names in (("inputs", ["A", "B"]), ("outputs", ["DIFFERENCE", "SUM"])):
        assert metadata[side] == [{"name": name, "datatype": "FP32", "shape": [-1, 4]} for name in names]


@REPORTS.behaviour
def tensors_of_a_model_without_batches_have_no_batch_dimension(stage: Stage) -> None:
    metadata = stage.shared.adapter.model_metadata("sayer")

    assert metadata["outputs"] == [
        {"name": "SAID", "datatype": "BYTES", "shape": [1]},
        {"name": "X", "datatype": "FP32", "shape": [1]},
    ]


@REPORTS.cases({"of the model": ("",), "of its version": ("1",)})
def a_configuration_is_whole(stage: Stage, version: str) -> None:
    config = stage.shared.adapter.model_config("add_sub", version)

    assert (config["name"], config["backend"], config["max_batch_size"]) == ("add_sub", "suite", 8)
    assert [(each["name"], each["data_type"], each["dims"]) for each in config["input"]] == [
        ("A", "TYPE_FP32", [4]),
        ("B", "TYPE_FP32", [4]),
    ]
    assert config["version_policy"] == {"latest": {"num_versions": 1}}
    assert config["instance_group"][0]["kind"] == "KIND_CPU"


@REPORTS.behaviour
def requests_executions_and_inferences_are_counted(stage: Stage) -> None:
    before = time() * 1000
    with stage.serving() as served:
        served.adapter.infer(Call("add_sub", SUMS))
        served.adapter.infer(Call("add_sub", [Input("A", A[:1]), Input("B", A[:1])]))
        (statistics,) = served.adapter.statistics("add_sub", "1")

    assert (statistics["name"], statistics["version"]) == ("add_sub", "1")
    assert (statistics["inference_count"], statistics["execution_count"]) == (3, 2)
    assert {name: each["count"] for name, each in statistics["inference_stats"].items()} == {
        **dict.fromkeys(("success", "queue", "compute_input", "compute_infer", "compute_output"), 2),
        **dict.fromkeys(("fail", "cache_hit", "cache_miss"), 0),
    }
    assert [each["batch_size"] for each in statistics["batch_stats"]] == [1, 2]
    assert [each["compute_infer"]["count"] for each in statistics["batch_stats"]] == [1, 1]
    assert before - 1 <= statistics["last_inference"] <= time() * 1000
    assert (statistics["memory_usage"], statistics["response_stats"]) == ([], {})
    times = {name: each["ns"] for name, each in statistics["inference_stats"].items()}
    phases = times["compute_input"] + times["compute_infer"] + times["compute_output"]
    assert 0 < times["compute_infer"] <= phases
    assert times["queue"] + phases <= times["success"] < 60e9


@REPORTS.behaviour
def failures_are_counted_apart(stage: Stage) -> None:
    with stage.serving() as served:
        with pytest.raises(RefusedError):
            served.adapter.infer(Call("add_sub", SUMS, parameters={"crash": "ouch"}))
        (statistics,) = served.adapter.statistics("add_sub")

    counts = {name: each["count"] for name, each in statistics["inference_stats"].items()}
    assert (counts["success"], counts["fail"]) == (0, 1)
    assert (statistics["inference_count"], statistics["execution_count"], statistics["last_inference"]) == (0, 0, 0)


@REPORTS.behaviour
def responses_of_a_stream_are_counted_by_their_index(stage: Stage) -> None:
    with stage.serving() as served:
        for count in (2, 1):
            assert len(list(served.adapter.stream(Call("repeat", [counted(count)])))) == count
        (statistics,) = served.adapter.statistics("repeat")

    successes = {index: each["success"]["count"] for index, each in statistics["response_stats"].items()}
    assert (successes["0"], successes["1"]) == (2, 1)
    assert set(statistics["response_stats"]["0"]) == {
        *("compute_infer", "compute_output", "success", "fail", "empty_response", "cancel")
    }


@REPORTS.behaviour
def statistics_and_index_have_every_model(stage: Stage) -> None:
    adapter = stage.shared.adapter

    assert [each["name"] for each in adapter.statistics()] == ["add_sub", "mirror", "repeat", "sayer"]
    assert adapter.index() == [
        {"name": name, "version": "1", "state": "READY"} for name in ("add_sub", "mirror", "repeat", "sayer")
    ]
