"""What the client library learns about a server and its models."""

import pytest
from tritonclient.utils import InferenceServerException

from naiad import __version__

from .running import Running


def test_a_server_that_serves_all_its_models_is_live_and_ready(server: Running) -> None:
    with server.client() as client:
        told = (client.is_server_live(), client.is_server_ready(), client.is_model_ready("echo"))

        assert told == (True, True, True)
        assert client.is_model_ready("echo", "1")
        assert not client.is_model_ready("echo", "2")
        assert not client.is_model_ready("nobody")


def test_the_server_tells_its_name_version_and_extensions(server: Running) -> None:
    with server.client() as client:
        metadata = client.get_server_metadata()

    assert (metadata["name"], metadata["version"]) == ("naiad", __version__)
    assert {"binary_tensor_data", "classification", "model_repository", "statistics"} <= set(metadata["extensions"])


@pytest.mark.parametrize(
    ("model", "platform"),
    [("custom_add_sub", "python"), ("triton_add_sub", "python"), ("onnx_add_sub", "onnxruntime_onnx")],
)
def test_a_model_tells_its_tensors(server: Running, model: str, platform: str) -> None:
    with server.client() as client:
        metadata, of_version = client.get_model_metadata(model), client.get_model_metadata(model, "1")

    assert metadata == of_version
    assert (metadata["name"], metadata["versions"], metadata["platform"]) == (model, ["1"], platform)
    for side, names in (("inputs", ["A", "B"]), ("outputs", ["SUM", "DIFFERENCE"])):
        assert metadata[side] == [{"name": name, "datatype": "FP32", "shape": [-1, 4]} for name in names]


def test_tensors_of_a_model_that_does_not_batch_have_no_batch_dimension(server: Running) -> None:
    with server.client() as client:
        models = ("custom_mirror", "triton_mirror", "onnx_mirror", "onnx_bf16")
        shapes = [each["shape"] for model in models for each in client.get_model_metadata(model)["inputs"]]

    assert shapes == [[-1, -1]] * (14 + 14 + 13 + 1)


@pytest.mark.parametrize("model", ["custom_add_sub", "triton_add_sub", "onnx_add_sub"])
def test_a_configuration_is_told_whole(server: Running, model: str) -> None:
    with server.client() as client:
        config, of_version = client.get_model_config(model), client.get_model_config(model, "1")

    assert config == of_version
    assert (config["name"], config["max_batch_size"]) == (model, 8)
    assert [(each["name"], each["data_type"], each["dims"]) for each in config["input"]] == [
        ("A", "TYPE_FP32", [4]),
        ("B", "TYPE_FP32", [4]),
    ]
    assert config["version_policy"] == {"latest": {"num_versions": 1}}
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 0
    assert config["instance_group"][0]["kind"] == "KIND_CPU"


@pytest.mark.parametrize("call", ["get_model_metadata", "get_model_config", "get_inference_statistics"])
@pytest.mark.parametrize(
    ("model", "version", "told"),
    [("nobody", "", "unknown model: 'nobody' is not found"), ("echo", "7", "'echo' version 7 is not found")],
)
def test_what_is_not_there_is_not_found(server: Running, call: str, model: str, version: str, told: str) -> None:
    with server.client() as client, pytest.raises(InferenceServerException, match=told) as caught:
        getattr(client, call)(model, version)

    assert caught.value.status() == "404"


def test_headers_and_query_parameters_do_no_harm(server: Running) -> None:
    more = {"headers": {"X-Tenant": "blue"}, "query_params": {"test_1": 1, "test_2": ["a b", "ü"]}}
    with server.client() as client:
        assert client.is_server_live(**more)
        assert client.is_model_ready("echo", **more)
        assert client.get_model_metadata("echo", **more)["name"] == "echo"
        assert client.get_model_repository_index(**more)
        assert client.get_inference_statistics("echo", **more)["model_stats"][0]["name"] == "echo"


@pytest.mark.parametrize(
    "path", ["/v2/health/live", "/v2/health/ready", "/v2/models/echo/ready", "/v2/models/echo/versions/1/ready"]
)
def test_a_good_answer_about_health_is_empty(server: Running, path: str) -> None:
    answer = server.ask("GET", path)

    assert (answer.status, answer.body) == (200, b"")


def test_the_description_of_the_interface_names_every_route_of_the_client(server: Running) -> None:
    paths = server.ask("GET", "/openapi.json").document["paths"]

    assert set(paths) >= {
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/stats",
        "/v2/models/{model}",
        "/v2/models/{model}/config",
        "/v2/models/{model}/infer",
        "/v2/models/{model}/ready",
        "/v2/models/{model}/stats",
        "/v2/models/{model}/versions/{version}/infer",
        "/v2/repository/index",
        "/v2/repository/models/{model}/load",
        "/v2/repository/models/{model}/unload",
    }
