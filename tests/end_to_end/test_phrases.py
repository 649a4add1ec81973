"""Errors in the words that clients and scripts look for, of a real server asked over HTTP and gRPC."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from . import models
from .conftest import ending_well
from .running import Running

_MIRROR = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", requests[0].inputs()[0].as_numpy())])]
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("phrases")
    resting = _MIRROR + "    def is_ready(self):\n        return False\n"
    models.write(folder / "models", "resting", resting, models.triton_config({"X": "FP32"}, {"Y": "FP32"}, "4"))
    for kind in ("FP16", "FP32"):
        models.write(folder / "models", kind.lower(), _MIRROR, models.triton_config({"X": kind}, {"Y": kind}, "4"))
    with ending_well(
        Running(folder / "models", folder / "log", "--model-control-mode=explicit", "--load-model=*")
    ) as it:
        yield it


def in_json(kind: str, data: list[float]) -> dict[str, Any]:
    return {"name": "X", "datatype": kind, "shape": [4], "data": data}


IN_JSON = {
    "receiving FP16 data via JSON is not supported. Please use the binary data format for input": (
        "fp16",
        {"inputs": [in_json("FP16", [1, 2, 3, 4])]},
    ),
    "unexpected inference output 'Z' for model 'fp32'": (
        "fp32",
        {"inputs": [in_json("FP32", [1, 2, 3, 4])], "outputs": [{"name": "Z"}]},
    ),
}


@pytest.mark.parametrize("phrase", IN_JSON)
def test_a_request_in_json_that_is_wrong_is_refused_in_these_words(running: Running, phrase: str) -> None:
    model, document = IN_JSON[phrase]

    answer = running.ask("POST", f"/v2/models/{model}/infer", document)

    assert answer.status == 400
    assert phrase in answer.error


def test_halves_are_not_sent_in_json(running: Running) -> None:
    head = b'{"inputs":[{"name":"X","datatype":"FP16","shape":[4],"parameters":{"binary_data_size":8}}]}'

    answer = running.ask(
        "POST", "/v2/models/fp16/infer", head + bytes(8), {"Inference-Header-Content-Length": str(len(head))}
    )

    assert "sending FP16 data via JSON is not supported. Please use the binary data format for output" in answer.error


def test_a_version_that_is_not_ready_says_so(running: Running) -> None:
    answer = running.ask("GET", "/v2/models/resting/ready")

    assert answer.status == 400
    assert answer.error.startswith("Model version not ready")


REFUSED = {
    "Request for unknown model: 'nothing' is not found": {"model": "nothing"},
    "Request for unknown model: 'fp32' version 7 is not found": {"version": "7"},
    "unexpected inference input 'Z' for model 'fp32'": {"name": "Z"},
    "inference input 'X' data-type is 'FP64', but model 'fp32' expects 'FP32'": {"array": np.zeros(4)},
    "unexpected shape for input 'X' for model 'fp32'. Expected [4], got [5]": {"array": np.zeros(5, np.float32)},
    "expected 1 inputs but got 0 inputs for model 'fp32'": {"name": ""},
}


@pytest.mark.parametrize("library", [tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
@pytest.mark.parametrize("phrase", REFUSED)
def test_a_request_that_does_not_fit_is_refused_in_these_words(running: Running, library: Any, phrase: str) -> None:
    how: dict[str, Any] = REFUSED[phrase]
    array = how.get("array", np.zeros(4, np.float32))
    inputs = []
    if name := how.get("name", "X"):
        inputs.append(library.InferInput(name, list(array.shape), {4: "FP32", 8: "FP64"}[array.itemsize]))
        inputs[0].set_data_from_numpy(array)
    address = running.url if library is tritonclient.http else f"127.0.0.1:{running.grpc_port}"

    with library.InferenceServerClient(address) as client, pytest.raises(InferenceServerException) as refused:
        client.infer(how.get("model", "fp32"), inputs, model_version=how.get("version", ""))

    assert phrase in str(refused.value)
