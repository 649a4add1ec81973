"""What every client can ask about a server and its models, and change: each call of each client, over its own wire."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from .. import models
from ..running import Running
from .driving import Driven

ADDS = """
from naiad_custom import FP32, Array, model

@model
def adds(x: Array[FP32, -1]) -> Array[FP32, -1]:
    return x + {number}
"""


def listed(client: Driven) -> list[dict[str, Any]]:
    """The index; gRPC puts it into a message."""
    index = client.get_model_repository_index()
    return index if client.is_web else index["models"]


def values(settings: Any) -> dict[str, list[str]]:
    """Trace settings, each as a list of texts, as gRPC has them."""
    if "settings" in settings:
        return {name: each["value"] for name, each in settings["settings"].items()}
    return {name: value if isinstance(value, list) else [value] for name, value in settings.items()}


def plain(settings: Any) -> dict[str, Any]:
    """Log settings by name; gRPC wraps each into a message of its type."""
    if "settings" not in settings:
        return dict(settings)
    return {name: next(iter(each.values())) for name, each in settings["settings"].items() if each}


def test_a_server_is_live_and_ready(client: Driven) -> None:
    assert client.is_server_live() is True
    assert client.is_server_ready() is True


def test_a_model_and_its_version_are_ready(client: Driven) -> None:
    assert client.is_model_ready("echo") is True
    assert client.is_model_ready("echo", "1") is True


def test_an_unknown_model_is_not_ready(client: Driven) -> None:
    if client.is_web:
        assert client.is_model_ready("nothing") is False
    else:
        with pytest.raises(InferenceServerException, match="'nothing' is not found"):
            client.is_model_ready("nothing")


def test_a_server_says_what_it_is(client: Driven) -> None:
    metadata = client.get_server_metadata()

    assert metadata["name"] == "naiad"
    assert {"classification", "binary_tensor_data", "system_shared_memory", "statistics"} <= set(metadata["extensions"])


def test_a_model_says_what_it_takes_and_gives(client: Driven) -> None:
    metadata = client.get_model_metadata("custom_add_sub", "1")

    assert (metadata["name"], metadata["versions"], metadata["platform"]) == ("custom_add_sub", ["1"], "python")
    assert [(each["name"], each["datatype"]) for each in metadata["inputs"]] == [("A", "FP32"), ("B", "FP32")]
    assert [list(map(int, each["shape"])) for each in metadata["outputs"]] == [[-1, 4], [-1, 4]]


def test_a_model_tells_its_configuration(client: Driven) -> None:
    told = client.get_model_config("custom_add_sub", "1")
    config = told if client.is_web else told["config"]

    assert (config["name"], config["backend"], config["max_batch_size"]) == ("custom_add_sub", "python", 8)
    assert [each["data_type"] for each in config["input"]] == ["TYPE_FP32", "TYPE_FP32"]


@pytest.mark.parametrize("call", ["get_model_metadata", "get_model_config", "get_inference_statistics"])
def test_an_unknown_model_is_an_error_that_says_so(client: Driven, call: str) -> None:
    with pytest.raises(InferenceServerException, match="nothing") as caught:
        getattr(client, call)("nothing")

    assert caught.value.status() == ("404" if client.is_web else "StatusCode.NOT_FOUND")


def test_the_index_lists_models_and_their_states(client: Driven) -> None:
    assert {"name": "echo", "version": "1", "state": "READY"} in listed(client)


def test_models_are_unloaded_and_loaded(client: Driven) -> None:
    client.unload_model("custom_mirror")
    without = [each.get("state") for each in listed(client) if each["name"] == "custom_mirror"]
    client.unload_model("custom_mirror", unload_dependents=True)
    client.load_model("custom_mirror")

    assert without in (["UNLOADING"], ["UNAVAILABLE"])
    assert client.is_model_ready("custom_mirror")


def test_a_model_is_loaded_with_the_configuration_and_the_files_of_a_request(client: Driven) -> None:
    config = json.dumps({"backend": "python", "version_policy": {"all": {}}})
    files = {f"file:{number}/model.py": ADDS.format(number=number).encode() for number in (1, 2)}
    x = client.tensor("x", np.zeros(1, np.float32))

    client.load_model("given", config=config, files=files)
    answers = [client.infer("given", [x], version).as_numpy("output") for version in ("1", "2", "")]
    client.unload_model("given")

    assert [answer.tolist() for answer in answers] == [[1.0], [2.0], [2.0]]


def test_what_cannot_be_loaded_is_an_error(client: Driven) -> None:
    with pytest.raises(InferenceServerException, match="nothing"):
        client.load_model("nothing")


def test_statistics_count_what_was_inferred(client: Driven, serving: Running) -> None:
    models.write(serving.repository, "counted", models.ECHO)
    client.load_model("counted")
    client.infer("counted", [client.tensor("x", np.ones(2, np.float32))])

    (counted,) = client.get_inference_statistics("counted", "1")["model_stats"]
    every = client.get_inference_statistics()["model_stats"]
    client.unload_model("counted")

    assert int(counted["inference_count"]) == int(counted["inference_stats"]["success"]["count"]) == 1
    assert {"counted", "echo", "scores"} <= {each["name"] for each in every}


def test_trace_settings_are_changed_for_all_models_and_for_one(client: Driven, tmp_path: Path) -> None:
    before = values(client.get_trace_settings())
    changed = values(client.update_trace_settings(settings={"trace_rate": "500", "trace_level": ["TIMESTAMPS"]}))
    of_one = values(client.update_trace_settings("echo", {"trace_rate": "7"}))
    seen = values(client.get_trace_settings("echo"))
    after = values(client.update_trace_settings("echo", {"trace_rate": None}))
    client.update_trace_settings(settings={"trace_rate": None, "trace_level": None})

    assert (changed["trace_rate"], changed["trace_level"]) == (["500"], ["TIMESTAMPS"])
    assert of_one["trace_rate"] == seen["trace_rate"] == ["7"]
    assert after["trace_rate"] == ["500"]
    assert values(client.get_trace_settings()) == before


def test_log_settings_are_changed_while_the_server_runs(client: Driven) -> None:
    before = plain(client.get_log_settings())
    changed = plain(client.update_log_settings({"log_verbose_level": 1, "log_info": True, "log_format": "ISO8601"}))
    after = plain(client.update_log_settings({"log_verbose_level": 0, "log_format": "default"}))

    assert (changed["log_verbose_level"], changed["log_format"]) == (1, "ISO8601")
    assert after == before
    with pytest.raises(InferenceServerException, match="log file location can not be updated"):
        client.update_log_settings({"log_file": "/tmp/log"})


def test_a_client_may_be_closed_twice(client: Driven) -> None:
    alive = client.is_server_live()
    client.close()
    client.close()

    assert alive
