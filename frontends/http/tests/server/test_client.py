"""The real client library against a whole server, unchanged."""

import asyncio
import json

import ml_dtypes
import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

from naiad.datatypes import TENSOR_TYPES

VALUES = {
    "BOOL": [True, False, True],
    "UINT64": [0, 2**64 - 1],
    "INT64": [-(2**63), 2**63 - 1],
    "INT8": [-128, 127],
    "UINT8": [0, 255],
    "FP32": [0.1, -3.4e38],
    "FP64": [0.1, 1.7e308],
}


@pytest.fixture
def client(server):
    with triton.InferenceServerClient(server.url, connection_timeout=20, network_timeout=20) as opened:
        yield opened


def tensor(name, array, datatype, binary=True):
    given = triton.InferInput(name, list(array.shape), datatype)
    given.set_data_from_numpy(array, binary_data=binary)
    return given


def add_sub_inputs():
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    return array, [tensor("A", array, "FP32"), tensor("B", array + 1, "FP32")]


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("wire", [wire for wire in TENSOR_TYPES if wire not in ("BYTES", "BF16", "FP16")])
def test_tensors_of_every_datatype_come_back(client, wire, binary):
    array = np.array(VALUES.get(wire, [0, 1, 2]), TENSOR_TYPES[wire].dtype)

    result = client.infer(
        f"mirror_{wire.lower()}",
        [tensor("X", array, wire, binary)],
        outputs=[triton.InferRequestedOutput("Y", binary_data=binary)],
    )

    assert result.as_numpy("Y").dtype == array.dtype
    np.testing.assert_array_equal(result.as_numpy("Y"), array)


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_strings_come_back(client, binary_in, binary_out):
    array = np.array(["a", "ü", "", 'q"\\'], dtype=object)

    result = client.infer(
        "mirror_string",
        [tensor("X", array, "BYTES", binary_in)],
        outputs=[triton.InferRequestedOutput("Y", binary_data=binary_out)],
    )

    assert [element if isinstance(element, str) else element.decode() for element in result.as_numpy("Y")] == list(
        array
    )


def test_fp16_comes_back(client):
    array = np.array([0.5, -1.5, 65504], np.float16)

    result = client.infer("mirror_fp16", [tensor("X", array, "FP16")])

    np.testing.assert_array_equal(result.as_numpy("Y"), array)


def test_bf16_comes_back(client):
    array = np.array([1.0, -2.5, 3e38], ml_dtypes.bfloat16)

    result = client.infer("mirror_bf16", [tensor("X", array, "BF16")])

    np.testing.assert_array_equal(result.as_numpy("Y"), array)


def test_an_empty_tensor_comes_back(client):
    result = client.infer("mirror_fp32", [tensor("X", np.zeros(0, np.float32), "FP32")])

    assert result.as_numpy("Y").shape == (0,)


def test_outputs_are_chosen_and_the_id_comes_back(client):
    array, inputs = add_sub_inputs()

    result = client.infer(
        "add_sub", inputs, outputs=[triton.InferRequestedOutput("DIFF")], request_id="42", model_version="1"
    )

    assert (result.get_response()["id"], result.as_numpy("SUM")) == ("42", None)
    np.testing.assert_array_equal(result.as_numpy("DIFF"), array + 1)


def test_parameters_go_in_and_out(client):
    _, inputs = add_sub_inputs()

    result = client.infer("add_sub", inputs, parameters={"text": "a", "whole": 3, "half": 0.5, "flag": True})

    assert result.get_response()["parameters"] == {"text": "a", "whole": 3, "half": 0.5, "flag": True}


def test_the_best_classes_have_their_labels(client):
    _, inputs = add_sub_inputs()

    result = client.infer("add_sub", inputs, outputs=[triton.InferRequestedOutput("SUM", class_count=2)])

    assert result.as_numpy("SUM").tolist() == [
        [b"3.000000:3", b"2.000000:2:two"],
        [b"7.000000:3", b"6.000000:2:two"],
    ]


@pytest.mark.parametrize("request_coding", [None, "gzip", "deflate"])
@pytest.mark.parametrize("response_coding", [None, "gzip", "deflate"])
@pytest.mark.parametrize("size", [4, 100_000])
def test_bodies_may_be_compressed_both_ways(client, request_coding, response_coding, size):
    array = np.arange(size, dtype=np.float32)

    result = client.infer(
        "mirror_fp32",
        [tensor("X", array, "FP32")],
        request_compression_algorithm=request_coding,
        response_compression_algorithm=response_coding,
    )

    np.testing.assert_array_equal(result.as_numpy("Y"), array)


def test_many_requests_at_once(client, server):
    array, inputs = add_sub_inputs()
    with triton.InferenceServerClient(server.url, concurrency=8) as many:
        requests = [many.async_infer("add_sub", inputs, request_id=str(number)) for number in range(50)]
        results = [request.get_result() for request in requests]

    assert [result.get_response()["id"] for result in results] == [str(number) for number in range(50)]
    np.testing.assert_array_equal(results[-1].as_numpy("SUM"), array)


def test_health_and_metadata(client):
    metadata = client.get_model_metadata("add_sub")

    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("add_sub", "1")
    assert client.get_server_metadata()["name"] == "naiad"
    assert (metadata["versions"], metadata["platform"]) == (["1"], "mirror")
    assert metadata["inputs"][0] == {"name": "A", "datatype": "FP32", "shape": [-1, 4]}
    assert [output["name"] for output in metadata["outputs"]] == ["SUM", "DIFF"]


def test_the_configuration_is_whole(client):
    config = client.get_model_config("add_sub")

    assert (config["name"], config["max_batch_size"], config["input"][0]["dims"]) == ("add_sub", 8, [4])


def test_the_statistics_count(client):
    _, inputs = add_sub_inputs()
    client.infer("add_sub", inputs)

    (counted,) = client.get_inference_statistics("add_sub")["model_stats"]
    everything = client.get_inference_statistics()["model_stats"]

    assert (counted["version"], counted["inference_count"], counted["execution_count"]) == ("1", 2, 1)
    assert counted["inference_stats"]["success"]["count"] == 1
    assert counted["batch_stats"][0]["batch_size"] == 2
    assert len(everything) > 10


def test_models_are_loaded_and_unloaded_by_request(client):
    config = json.dumps(client.get_model_config("mirror_fp32") | {"max_batch_size": 3})
    client.unload_model("mirror_fp32")
    unloaded = next(each for each in client.get_model_repository_index() if each["name"] == "mirror_fp32")
    client.load_model("mirror_fp32", config=config)

    assert unloaded["state"] in ("UNLOADING", "UNAVAILABLE")
    assert client.get_model_config("mirror_fp32")["max_batch_size"] == 3


def test_a_model_is_loaded_from_files_in_the_request(client):
    config = json.dumps(client.get_model_config("mirror_fp32") | {"name": "sent"})

    client.load_model("sent", config=config, files={"file:7/mirror": b"\x00\x01"})

    assert client.get_model_metadata("sent")["versions"] == ["7"]


def test_a_failed_load_tells_why_and_harms_nothing(client):
    broken = client.get_model_config("mirror_fp32") | {"parameters": {"broken": {"string_value": "yes"}}}

    with pytest.raises(InferenceServerException, match="the mirror is broken") as caught:
        client.load_model("mirror_fp32", config=json.dumps(broken))

    assert caught.value.status() == "400"
    assert client.is_model_ready("mirror_fp32")


def infer_add_sub(client, **changes):
    _, inputs = add_sub_inputs()
    return client.infer(changes.pop("model_name", "add_sub"), changes.pop("inputs", inputs), **changes)


ERRORS = {
    "unknown model": (lambda c: infer_add_sub(c, model_name="dream"), "404", "unknown model: 'dream' is not found"),
    "unknown version": (lambda c: infer_add_sub(c, model_version="9"), "404", "version 9 is not found"),
    "missing input": (lambda c: infer_add_sub(c, inputs=add_sub_inputs()[1][:1]), "400", "missing required input"),
    "unknown output": (
        lambda c: infer_add_sub(c, outputs=[triton.InferRequestedOutput("Z")]),
        "400",
        "unexpected inference output 'Z'",
    ),
    "model raises": (lambda c: infer_add_sub(c, parameters={"fail": "ouch"}), "500", "RuntimeError: ouch"),
    "model refuses": (
        lambda c: infer_add_sub(c, parameters={"refuse": "no"}, request_id="5"),
        "400",
        "[request id: 5] no",
    ),
    "unknown metadata": (lambda c: c.get_model_metadata("dream"), "404", "unknown model: 'dream'"),
    "unknown config": (lambda c: c.get_model_config("dream", "3"), "404", "unknown model: 'dream'"),
    "unknown statistics": (lambda c: c.get_inference_statistics("dream"), "404", "unknown model: 'dream'"),
    "unknown load": (lambda c: c.load_model("dream"), "404", "dream"),
    "path in a load": (lambda c: c.load_model(".."), "400", "must not contain path traversal"),
    "endless name": (lambda c: c.load_model("x" * 5000), "400", "longer than a folder's name can be"),
    "path in a file": (
        lambda c: c.load_model("new", config='{"backend":"mirror"}', files={"file:../../x": b""}),
        "400",
        "must stay within model directory",
    ),
    "endless file name": (
        lambda c: c.load_model("new", config='{"backend":"mirror"}', files={"file:1/" + "x" * 5000: b""}),
        "400",
        "",
    ),
    "config that is no JSON": (lambda c: c.load_model("add_sub", config="{"), "400", ""),
    "shared memory": (lambda c: c.unregister_system_shared_memory(), "501", "--allow-client-shm=true"),
}


@pytest.mark.parametrize(("action", "status", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_have_a_message_and_a_status(client, action, status, message):
    with pytest.raises(InferenceServerException) as caught:
        action(client)

    assert caught.value.status() == status
    assert message in caught.value.message()
    assert "Traceback" not in caught.value.message()
    assert client.is_server_live()


def test_the_asyncio_client_works_too(server):
    async def ask():
        array, inputs = add_sub_inputs()
        async with triton_aio.InferenceServerClient(server.url) as client:
            results = await asyncio.gather(
                *(client.infer("add_sub", inputs, request_id=str(number)) for number in range(20))
            )
            assert await client.is_server_ready()
            assert await client.is_model_ready("add_sub")
            with pytest.raises(InferenceServerException, match="dream"):
                await client.get_model_metadata("dream")
            return array, results

    array, results = asyncio.run(ask())

    assert [result.get_response()["id"] for result in results] == [str(number) for number in range(20)]
    np.testing.assert_array_equal(results[0].as_numpy("SUM"), array)
