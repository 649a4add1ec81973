"""Every call of Triton's client library against a whole server."""

import json
import threading

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from tritonclient.utils import InferenceServerException

from .conftest import values_input


def test_health_and_metadata(client):
    metadata = client.get_model_metadata("mirror")

    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("mirror", "1")
    assert client.get_server_metadata().name == "naiad"
    assert (metadata.name, list(metadata.versions), metadata.platform) == ("mirror", ["1"], "fake")
    assert [(each.name, each.datatype, list(each.shape)) for each in metadata.inputs] == [("INPUT", "FP32", [-1])]


def test_the_configuration_is_whole(client):
    config = client.get_model_config("mirror", as_json=True)["config"]

    assert (config["name"], config["backend"], config["input"][0]["dims"]) == ("mirror", "fake", ["-1"])


def test_tensors_go_there_and_back(client):
    result = client.infer("mirror", values_input(1, 2.5, -3), request_id="42", parameters={"own": "value"})

    np.testing.assert_array_equal(result.as_numpy("OUTPUT"), np.array([1, 2.5, -3], np.float32))
    response = result.get_response()
    assert (response.id, response.model_version) == ("42", "1")
    assert response.parameters["own"].string_param == "value"


def test_strings_go_there_and_back(client):
    words = np.array([b"one", "zwölf".encode(), b"\x00"], object)
    tensor = triton.InferInput("INPUT", [3], "BYTES")
    tensor.set_data_from_numpy(words)

    assert client.infer("words", [tensor]).as_numpy("OUTPUT").tolist() == words.tolist()


def test_results_come_to_a_callback(client):
    came, results = threading.Event(), []

    def note(result, error):
        results.append((result, error))
        came.set()

    client.async_infer("mirror", values_input(7), note)

    assert came.wait(30)
    assert results[0][1] is None
    assert results[0][0].as_numpy("OUTPUT").tolist() == [7]


def test_a_stream_carries_many_requests(client):
    came, results = threading.Semaphore(0), []

    def note(result, error):
        results.append((error, result and result.get_response().id))
        came.release()

    client.start_stream(note)
    for number in range(20):
        client.async_stream_infer("mirror", values_input(number), request_id=str(number))
    for _ in range(20):
        assert came.acquire(timeout=30)
    client.stop_stream()

    assert results == [(None, str(number)) for number in range(20)]


def test_the_statistics_count(client):
    client.infer("mirror", values_input(1, 2))

    (counted,) = client.get_inference_statistics("mirror").model_stats
    everything = client.get_inference_statistics().model_stats

    assert (counted.version, counted.inference_count, counted.execution_count) == ("1", 1, 1)
    assert counted.inference_stats.success.count == 1
    assert [each.name for each in everything] == ["mirror", "words"]


def test_models_are_loaded_and_unloaded_by_request(client):
    config = json.dumps({"backend": "fake", "max_batch_size": 3})

    client.unload_model("mirror")
    unloaded = next(each for each in client.get_model_repository_index().models if each.name == "mirror")
    client.load_model("mirror", config=config)
    client.load_model("sent", config=config, files={"file:7/weights": b"\x00\x01"})

    assert unloaded.state in ("UNLOADING", "UNAVAILABLE")
    assert client.get_model_config("mirror").config.max_batch_size == 3
    assert list(client.get_model_metadata("sent").versions) == ["7"]


def test_trace_and_log_settings_are_read_and_changed(client):
    before = client.get_trace_settings().settings
    client.update_trace_settings("mirror", {"trace_rate": "7", "trace_level": ["TIMESTAMPS"]})
    cleared = client.update_trace_settings("mirror", {"trace_rate": None}).settings
    changed = client.update_log_settings({"log_verbose_level": 1, "log_info": False}).settings
    restored = client.update_log_settings({"log_verbose_level": 0, "log_info": True}).settings

    assert cleared["trace_rate"].value == before["trace_rate"].value
    assert list(cleared["trace_level"].value) == ["TIMESTAMPS"]
    assert (changed["log_verbose_level"].uint32_param, changed["log_info"].bool_param) == (1, False)
    assert restored == client.get_log_settings().settings


def test_without_the_plugin_shared_memory_is_unimplemented_and_everything_else_works(start_server):
    client = start_server(beside=()).client()
    given, wanted = triton.InferInput("INPUT", [2], "FP32"), triton.InferRequestedOutput("OUTPUT")
    given.set_shared_memory("r", 8)
    wanted.set_shared_memory("r", 8)

    for call in (
        client.get_system_shared_memory_status,
        lambda: client.register_system_shared_memory("r", "/k", 64),
        lambda: client.register_cuda_shared_memory("r", b"AAAA", 0, 64),
        client.unregister_cuda_shared_memory,
        lambda: client.infer("mirror", [given]),
        lambda: client.infer("mirror", values_input(1, 2), outputs=[wanted]),
    ):
        with pytest.raises(InferenceServerException, match="pip install 'naiad-shared-memory'") as caught:
            call()
        assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
    assert client.infer("mirror", values_input(1, 2)).as_numpy("OUTPUT").tolist() == [1, 2]
    assert not any("shared_memory" in name for name in client.get_server_metadata().extensions)


def test_shared_memory_is_off_unless_it_is_allowed(client):
    assert dict(client.get_system_shared_memory_status().regions) == {}
    assert dict(client.get_cuda_shared_memory_status().regions) == {}
    for call in (
        lambda: client.register_system_shared_memory("r", "/k", 64),
        lambda: client.register_cuda_shared_memory("r", b"AAAA", 0, 64),
        client.unregister_system_shared_memory,
        client.unregister_cuda_shared_memory,
    ):
        with pytest.raises(InferenceServerException, match="--allow-client-shm=true") as caught:
            call()
        assert caught.value.status() == "StatusCode.UNIMPLEMENTED"


ERRORS = {
    "unknown model": (lambda c: c.infer("dream", values_input(1)), "NOT_FOUND", "unknown model: 'dream' is not found"),
    "unknown version": (lambda c: c.is_model_ready("mirror", "9"), "NOT_FOUND", "version 9 is not found"),
    "no version": (lambda c: c.get_model_config("mirror", "new"), "INVALID_ARGUMENT", "integral value > 0"),
    "unknown metadata": (lambda c: c.get_model_metadata("dream"), "NOT_FOUND", "unknown model: 'dream'"),
    "unknown statistics": (lambda c: c.get_inference_statistics("dream"), "NOT_FOUND", "unknown model: 'dream'"),
    "unknown load": (lambda c: c.load_model("dream"), "NOT_FOUND", "dream"),
    "path in a load": (lambda c: c.load_model(".."), "INVALID_ARGUMENT", "must not contain path traversal"),
    "files without a config": (
        lambda c: c.load_model("mirror", files={"file:1/x": b""}),
        "INVALID_ARGUMENT",
        "Load parameter 'config' must be specified for model file override",
    ),
    "model raises": (
        lambda c: c.infer("mirror", values_input(1), parameters={"fail": "ouch"}, request_id="5"),
        "INTERNAL",
        "ouch",
    ),
    "missing region": (lambda c: c.get_system_shared_memory_status("r"), "NOT_FOUND", "shared memory region: 'r'"),
    "trace file": (lambda c: c.update_trace_settings(settings={"trace_file": "x"}), "UNIMPLEMENTED", "trace file"),
    "log file": (lambda c: c.update_log_settings({"log_file": "x"}), "UNIMPLEMENTED", "log file location"),
    "log format": (lambda c: c.update_log_settings({"log_format": "x"}), "INVALID_ARGUMENT", "log_format"),
    "log setting": (lambda c: c.update_log_settings({"log_info": None}), "INVALID_ARGUMENT", "log_info"),
}


@pytest.mark.parametrize(("action", "status", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_have_a_message_and_a_status(client, action, status, message):
    with pytest.raises(InferenceServerException) as caught:
        action(client)

    assert caught.value.status() == f"StatusCode.{status}"
    assert message in caught.value.message()
    assert "Traceback" not in caught.value.message()
    assert client.is_server_live()


def test_models_can_only_be_loaded_in_explicit_mode(start_server):
    client = start_server(**{"model-control-mode": "none", "load-model": ()}).client()

    with pytest.raises(InferenceServerException, match="--model-control-mode=explicit") as caught:
        client.load_model("mirror")

    assert caught.value.status() == "StatusCode.UNAVAILABLE"


def test_the_asyncio_client_works_too(server):
    async def ask(_server):
        async with triton_aio.InferenceServerClient(server.target) as client:
            results = [await client.infer("mirror", values_input(number)) for number in range(3)]
            assert await client.is_server_ready()
            assert await client.is_model_ready("mirror")
            with pytest.raises(InferenceServerException, match="dream"):
                await client.get_model_metadata("dream")

            async def requests():
                for number in range(3):
                    yield {"model_name": "mirror", "inputs": values_input(number), "request_id": str(number)}

            streamed = [result async for result, error in client.stream_infer(requests()) if error is None]
            return results, streamed

    results, streamed = server.serving.wait_for(ask)

    assert [result.as_numpy("OUTPUT").tolist() for result in results] == [[0], [1], [2]]
    assert [result.get_response().id for result in streamed] == ["0", "1", "2"]
