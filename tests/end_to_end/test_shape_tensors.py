"""Inputs and outputs that hold a shape, in ONNX and Python models, through both protocols."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto, helper

from . import models
from .conftest import ending_well
from .running import Running

CONFIG = """
    max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 30000000 }
    input { name: "a" data_type: TYPE_FP32 dims: [ 1 ] }
    input { name: "shape" data_type: TYPE_INT64 dims: [ 1 ] is_shape_tensor: true }
    output { name: "wide" data_type: TYPE_FP32 dims: [ -1 ] }
    output { name: "given" data_type: TYPE_INT64 dims: [ 1 ] is_shape_tensor: true }
"""
"""Two requests of two items make a batch, and none waits for longer than tests do."""

NATIVE = """
import numpy as np
from naiad_custom import FP32, INT64, Array, model

@model(max_batch_size=8, outputs=("wide", "given"))
def widen(a: Array[FP32, 1], shape: Array[INT64, 2]) -> tuple[Array[FP32, -1], Array[INT64, 2]]:
    return np.broadcast_to(a, tuple(shape)), shape
"""
TRITON = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        a, shape = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("a", "shape"))
        wide = np.repeat(a, shape[0], axis=1)
        return pb_utils.InferenceResponse([pb_utils.Tensor("wide", wide), pb_utils.Tensor("given", shape)])
"""


def _onnx() -> Any:
    nodes = [helper.make_node("Expand", ["a", "shape"], ["wide"]), helper.make_node("Identity", ["shape"], ["given"])]
    rows, shape = (TensorProto.FLOAT, ["items", 1]), (TensorProto.INT64, [2])
    wide = (TensorProto.FLOAT, ["items", "width"])
    return models.onnx_model(nodes, {"a": rows, "shape": shape}, {"wide": wide, "given": shape}, [])


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of a model of each kind, which makes rows as wide as `shape` says."""
    folder = tmp_path_factory.mktemp("shapes")
    models.write(folder / "models", "native", NATIVE, f'backend: "python" {CONFIG}')
    models.write(folder / "models", "triton", TRITON, f'backend: "python" {CONFIG}')
    models.write_onnx(folder / "models", "onnx", _onnx(), f'backend: "onnxruntime" {CONFIG}')
    with ending_well(Running(folder / "models", folder / "log")) as running:
        yield running


def _widened(running: Running, library: Any, model: str, value: float, width: int) -> tuple[Any, Any]:
    """Two items of this value, made so wide, and the width as the model gives it back."""
    address = running.url if library is tritonclient.http else f"127.0.0.1:{running.grpc_port}"
    sent = {"a": np.full((2, 1), value, dtype=np.float32), "shape": np.array([width])}
    inputs = []
    for (name, array), datatype in zip(sent.items(), ("FP32", "INT64"), strict=True):
        inputs.append(library.InferInput(name, list(array.shape), datatype))
        inputs[-1].set_data_from_numpy(array)
    client = library.InferenceServerClient(address)
    result = client.infer(model, inputs)
    client.close()
    return result.as_numpy("wide").tolist(), result.as_numpy("given").tolist()


@pytest.mark.parametrize("library", [tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
@pytest.mark.parametrize("model", ["native", "triton", "onnx"])
@pytest.mark.parametrize("width", [2, 3])
def test_requests_for_the_same_shape_share_a_batch(serving: Running, model: str, library: Any, width: int) -> None:
    before = serving.statistics(model)["execution_count"]

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda value: _widened(serving, library, model, value, width), (1.0, 2.0)))

    assert answers == [([[value] * width] * 2, [width]) for value in (1.0, 2.0)]
    executed = serving.statistics(model)
    assert executed["execution_count"] == before + 1
    assert [each["batch_size"] for each in executed["batch_stats"]] == [4]


@pytest.mark.parametrize("model", ["native", "triton", "onnx"])
def test_clients_see_a_shape_without_a_batch_dimension(serving: Running, model: str) -> None:
    metadata = serving.ask("GET", f"/v2/models/{model}").document
    shape = {"name": "shape", "datatype": "INT64", "shape": [2, 1], "data": [3, 3]}
    refused = serving.ask(
        "POST",
        f"/v2/models/{model}/infer",
        {"inputs": [{"name": "a", "datatype": "FP32", "shape": [2, 1], "data": [1, 1]}, shape]},
    )

    assert {each["name"]: each["shape"] for each in metadata["inputs"]} == {"a": [-1, 1], "shape": [1]}
    assert {each["name"]: each["shape"] for each in metadata["outputs"]} == {"wide": [-1, -1], "given": [1]}
    assert refused.status == 400
    assert "unexpected shape for input 'shape'" in refused.error
    assert "Expected [1], got [2,1]" in refused.error
