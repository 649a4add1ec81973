"""A model.py whose configuration has neither inputs nor outputs, and no function that completes it."""

from typing import Any

import pytest
import tritonclient.grpc
import tritonclient.http

from ..running import Running
from .writing import PythonModel

MODELS = {"bare": PythonModel("return [pb_utils.InferenceResponse() for _ in requests]", tensors="")}


@pytest.mark.parametrize("library", [tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
def test_a_model_without_inputs_and_outputs_serves(running: Running, library: Any) -> None:
    address = running.url if library is tritonclient.http else f"127.0.0.1:{running.grpc_port}"

    with library.InferenceServerClient(address) as client:
        result = client.infer("bare", [])

    response = result.get_response()
    assert (response["model_name"] if isinstance(response, dict) else response.model_name) == "bare"
    assert running.ask("GET", "/v2/models/bare").document["inputs"] == []
