"""The model repository extension: index, load and unload, with configurations and files that come with the request."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from tritonclient.utils import InferenceServerException

from . import models
from .asking import tensor
from .conftest import Start
from .running import Running

ADDS = """
from naiad_custom import FP32, Array, model
{imports}

@model
def adds(x: Array[FP32, -1]) -> Array[FP32, -1]:
    return x + {number}
"""


def adds(number: int | str, imports: str = "") -> str:
    return ADDS.format(number=number, imports=imports)


def answer_of(server: Running, model: str, version: int = 0) -> float:
    """What the model makes of 1."""
    place = f"/versions/{version}" if version else ""
    given = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}
    answer = server.ask("POST", f"/v2/models/{model}{place}/infer", {"inputs": [given]})
    assert answer.status == 200, answer.body
    number: float = answer.document["outputs"][0]["data"][0]
    return number


def test_the_index_lists_folders_and_what_became_of_them(server: Running) -> None:
    models.write(server.repository, "beheld", adds(1))
    before = server.entries("beheld")
    server.load("beheld")
    loaded = server.entries("beheld")
    server.unload("beheld")
    with server.client() as client:
        client.load_model("echo")
        ready = json.loads(server.ask("POST", "/v2/repository/index", {"ready": True}).body)

    assert before == [{"name": "beheld"}]
    assert loaded == [{"name": "beheld", "version": "1", "state": "READY"}]
    assert server.entries("beheld") == [
        {"name": "beheld", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}
    ]
    assert {"name": "echo", "version": "1", "state": "READY"} in ready
    assert "beheld" not in {entry["name"] for entry in ready}


def test_a_model_that_was_unloaded_says_so_until_it_is_loaded_again(server: Running) -> None:
    with server.client() as client:
        client.unload_model("scores")
        with pytest.raises(InferenceServerException, match="no available versions: unloaded") as caught:
            client.infer("scores", [tensor("x", np.ones((1, 4), np.float32))])
        client.unload_model("scores", unload_dependents=True)
        was_ready = client.is_model_ready("scores")
        client.load_model("scores")
        result = client.infer("scores", [tensor("x", np.ones((1, 4), np.float32))])

    assert (caught.value.status(), was_ready) == ("503", False)
    assert result.as_numpy("scores").tolist() == [[1, 2, 3, 4]]


def test_a_configuration_of_the_request_counts_until_the_next_plain_load(server: Running) -> None:
    with server.client() as client:
        config = client.get_model_config("onnx_add_sub")
        client.load_model("onnx_add_sub", config=json.dumps(config | {"max_batch_size": 12}))
        overridden = client.get_model_config("onnx_add_sub")["max_batch_size"]
        client.load_model("onnx_add_sub")
        plain = client.get_model_config("onnx_add_sub")["max_batch_size"]

    assert (overridden, plain) == (12, 8)


def test_a_short_configuration_of_the_request_is_completed(server: Running) -> None:
    with server.client() as client:
        client.load_model("onnx_add_sub", config='{"maxBatchSize": 2, "instance_group": [{"count": 1}]}')
        config = client.get_model_config("onnx_add_sub")
        client.load_model("onnx_add_sub")

    assert (config["max_batch_size"], config["instance_group"][0]["count"]) == (2, 1)
    assert [each["name"] for each in config["input"]] == ["A", "B"]


def test_a_model_may_come_whole_with_the_request(server: Running) -> None:
    content = models.onnx_scores().SerializeToString()
    onnx.checker.check_model(content)

    with server.client() as client:
        client.load_model("sent", config="{}", files={"file:7/model.onnx": content})
        metadata = client.get_model_metadata("sent")
        result = client.infer("sent", [tensor("x", np.ones((1, 4), np.float32))])
        client.unload_model("sent")

    assert (metadata["versions"], result.as_numpy("scores").tolist()) == (["7"], [[1, 2, 3, 4]])
    assert not (server.repository / "sent").exists()


def test_files_of_the_request_stand_in_for_the_folder_until_the_next_plain_load(server: Running) -> None:
    models.write(server.repository, "replaced", adds(1))
    sent = {
        "file:1/model.py": adds("number", "from constants import number").encode(),
        "file:constants.py": b"number = 10",
        "file:2/model.py": adds(20).encode(),
    }

    with server.client() as client:
        client.load_model("replaced")
        before = answer_of(server, "replaced")
        client.load_model("replaced", config='{"versionPolicy": {"all": {}}}', files=sent)
        both = [answer_of(server, "replaced", version) for version in (1, 2)]
        largest = answer_of(server, "replaced")
        client.load_model("replaced")

    assert (before, both, largest) == (2, [11, 21], 21)
    assert (answer_of(server, "replaced"), len(server.entries("replaced"))) == (2, 2)
    server.unload("replaced")


def test_the_versions_that_the_policy_names_serve(server: Running) -> None:
    for version in (1, 2, 3, 10):
        models.write(
            server.repository, "versions", adds(version), "version_policy { specific { versions: [1, 10] } }", version
        )

    server.load("versions")
    served = {each["version"]: each["state"] for each in server.entries("versions")}
    answers = [answer_of(server, "versions", version) for version in (1, 10, 0)]
    missing = server.ask("GET", "/v2/models/versions/versions/2/ready")
    metadata = server.ask("GET", "/v2/models/versions").document
    server.unload("versions")

    assert served == {"1": "READY", "10": "READY"}
    assert answers == [2, 11, 11]
    assert (missing.status, metadata["versions"]) == (404, ["1", "10"])


def test_loading_what_has_not_changed_leaves_it_alone(server: Running) -> None:
    server.infer("echo", 1)
    before = server.ask("GET", "/v2/models/echo/stats").document["model_stats"][0]["inference_count"]

    server.load("echo")

    after = server.ask("GET", "/v2/models/echo/stats").document["model_stats"][0]["inference_count"]
    assert 0 < before == after


def test_loading_what_has_changed_on_disk_serves_the_new_content(server: Running) -> None:
    models.write(server.repository, "changing", adds(1))
    server.load("changing")
    before = answer_of(server, "changing")

    models.write(server.repository, "changing", adds(2))
    server.load("changing")

    assert (before, answer_of(server, "changing")) == (2, 3)
    server.unload("changing")


def test_loads_and_unloads_of_one_model_at_once_each_succeed(server: Running) -> None:
    models.write(server.repository, "contended", adds(1))

    with ThreadPoolExecutor(12) as pool:
        calls = [pool.submit(server.load if number % 3 else server.unload, "contended") for number in range(24)]
        statuses = {call.result().status for call in calls}
    server.load("contended")

    assert (statuses, answer_of(server, "contended")) == ({200}, 2)
    server.unload("contended")


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_models_are_controlled_by_request_in_explicit_mode_alone(start: Start, repository: Path, mode: str) -> None:
    running = start(f"--model-control-mode={mode}", "--repository-poll-secs=60")

    with running.client() as client:
        for call in (client.load_model, client.unload_model):
            with pytest.raises(
                InferenceServerException, match=r"explicit model load / unload is not allowed.*--model-control-mode"
            ) as caught:
                call("echo")
            assert caught.value.status() == "503"

    assert running.infer("echo", 1).status == 200
    running.stop()


def test_a_model_in_two_repositories_is_served_from_neither(start: Start, repository: Path) -> None:
    other = repository.parent / "others"
    models.write(other, "echo", adds(1))
    models.write(other, "alone", adds(1))

    running = start("--exit-on-error=false", f"--model-repository={other}")

    assert answer_of(running, "alone") == 2
    (entry,) = running.entries("echo")
    assert (entry["state"], "two or more repositories" in entry["reason"]) == ("UNAVAILABLE", True)
    assert running.infer("echo", 1).status == 503
    assert not running.ready()
    running.stop()
