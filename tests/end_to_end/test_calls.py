"""A Triton-style model that calls two others, in a real server that tritonclient asks over HTTP and gRPC."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from . import models
from .conftest import ending_well
from .running import Running

ADD = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            in_0 = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            in_1 = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("SUM", in_0 + in_1)]))
        return responses
"""
SUB = ADD.replace('"SUM"', '"DIFFERENCE"').replace("in_0 + in_1", "in_0 - in_1")
SYNC = """
import asyncio

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            calls = [
                pb_utils.InferenceRequest(model_name=model, requested_output_names=[output], inputs=request.inputs())
                for model, output in (("add", "SUM"), ("sub", "DIFFERENCE"))
            ]
            answers = [call.exec() for call in calls]
            for answer in answers:
                if answer.has_error():
                    raise pb_utils.TritonModelException(answer.error().message())
            responses.append(pb_utils.InferenceResponse([answer.output_tensors()[0] for answer in answers]))
        return responses
"""
ASYNC = SYNC.replace("    def", "    async def").replace(
    "[call.exec() for call in calls]", "await asyncio.gather(*[call.async_exec() for call in calls])"
)
MODELS = {
    "add": (ADD, {"SUM": "FP32"}),
    "sub": (SUB, {"DIFFERENCE": "FP32"}),
    "both": (SYNC, {"SUM": "FP32", "DIFFERENCE": "FP32"}),
    "both_async": (ASYNC, {"SUM": "FP32", "DIFFERENCE": "FP32"}),
}


@pytest.fixture(scope="module")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the models."""
    folder = tmp_path_factory.mktemp("calling")
    for name, (code, outputs) in MODELS.items():
        config = models.triton_config({"INPUT0": "FP32", "INPUT1": "FP32"}, outputs, "4")
        models.write(folder / "models", name, code, config)
    with ending_well(Running(folder / "models", folder / "log")) as running:
        yield running


@pytest.mark.parametrize("library", [tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
@pytest.mark.parametrize("model", ["both", "both_async"])
def test_a_model_answers_with_the_outputs_of_two_others(calling: Running, library: Any, model: str) -> None:
    address = calling.url if library is tritonclient.http else f"127.0.0.1:{calling.grpc_port}"
    inputs = [library.InferInput(name, [4], "FP32") for name in ("INPUT0", "INPUT1")]
    for factor, tensor in enumerate(inputs, 1):
        tensor.set_data_from_numpy(np.array([1, 2, 3, 4], np.float32) * factor)
    before = calling.counted("add", "success")

    with library.InferenceServerClient(address) as client:
        result = client.infer(model, inputs)

    assert result.as_numpy("SUM").tolist() == [3, 6, 9, 12]
    assert result.as_numpy("DIFFERENCE").tolist() == [-1, -2, -3, -4]
    assert calling.counted("add", "success") == before + 1
