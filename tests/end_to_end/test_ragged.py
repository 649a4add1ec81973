"""Requests of different lengths that share a batch, through both protocols, and the page about them."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto, helper

from . import models
from .conftest import ending_well
from .running import Running

PAGE = (Path(__file__).parents[2] / "docs" / "ragged.md").read_text(encoding="utf-8")

_BATCHING = "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 30000000 }"
"""Three requests make a batch, and none waits for longer than tests do."""

_CONFIG = f"""
    {_BATCHING}
    input {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }}
    output {{ name: "double" data_type: TYPE_FP32 dims: [ -1 ] }}
    output {{ name: "count" data_type: TYPE_INT32 dims: [ 1 ] }}
    batch_input {{ kind: BATCH_ITEM_SHAPE target_name: "shapes" data_type: TYPE_INT32 source_input: "x" }}
    batch_output {{ kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "double" source_input: "x" }}
"""
_NATIVE = """
from naiad_custom import FP32, INT32, Array, model

@model(max_batch_size=8, outputs=("double", "count"))
def double(x: Array[FP32, -1], shapes: Array[INT32, -1, 1]) -> tuple[Array[FP32, -1], Array[INT32, 1]]:
    return x + x, shapes
"""
_TRITON = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(pb_utils.get_input_tensor_by_name(each, "x").as_numpy()) for each in requests]

    def _answer(self, x):
        count = pb_utils.Tensor("count", np.array([[x.size]], dtype=np.int32))
        return pb_utils.InferenceResponse([pb_utils.Tensor("double", x + x), count])
"""


def _onnx() -> Any:
    nodes = [helper.make_node("Add", ["x", "x"], ["double"]), helper.make_node("Identity", ["shapes"], ["count"])]
    floats, shapes = (TensorProto.FLOAT, ["elements"]), (TensorProto.INT32, ["items", 1])
    return models.onnx_model(nodes, {"x": floats, "shapes": shapes}, {"double": floats, "count": shapes}, [])


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of one ragged model of each kind, and of that of the page."""
    folder = tmp_path_factory.mktemp("ragged")
    repository = folder / "models"
    models.write(repository, "native", _NATIVE, f'backend: "python" {_CONFIG}')
    models.write(repository, "triton", _TRITON, f'backend: "python" {_CONFIG}')
    models.write_onnx(repository, "onnx", _onnx(), f'backend: "onnxruntime" {_CONFIG}')
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (config,) = re.findall(r"```\n(name: .*?)```", PAGE, re.DOTALL)
    written = (
        config.replace("onnxruntime", "python").replace("dynamic_batching { }", "").replace("max_batch_size: 32", "")
    )
    models.write(repository, "lookup", source, f"{_BATCHING} {written}")
    with ending_well(Running(repository, folder / "log")) as running:
        yield running


def _http(running: Running, model: str, name: str, array: np.ndarray, datatype: str) -> Callable[[str], Any]:
    client = tritonclient.http.InferenceServerClient(running.url, connection_timeout=60, network_timeout=60)
    given = tritonclient.http.InferInput(name, list(array.shape), datatype)
    given.set_data_from_numpy(array)
    return _closing(client, client.infer(model, [given]))


def _grpc(running: Running, model: str, name: str, array: np.ndarray, datatype: str) -> Callable[[str], Any]:
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{running.grpc_port}")
    given = tritonclient.grpc.InferInput(name, list(array.shape), datatype)
    given.set_data_from_numpy(array)
    return _closing(client, client.infer(model, [given], client_timeout=60))


def _closing(client: Any, result: Any) -> Callable[[str], Any]:
    client.close()
    outputs: Callable[[str], Any] = result.as_numpy
    return outputs


def _together(running: Running, ask: Callable[..., Callable[[str], Any]], model: str, *arrays: np.ndarray) -> list[Any]:
    """The answers to requests of clients of their own, which all wait at the same time."""
    name, datatype = ("IDS", "INT32") if arrays[0].dtype == np.int32 else ("x", "FP32")
    with ThreadPoolExecutor(len(arrays)) as pool:
        return list(pool.map(lambda array: ask(running, model, name, array, datatype), arrays))


def _batches(running: Running, model: str) -> list[tuple[int, int]]:
    """The sizes of the batches that a model has executed, each with their number."""
    counted = running.statistics(model)["batch_stats"]
    return [(each["batch_size"], each["compute_infer"]["count"]) for each in counted]


def _floats(*values: float) -> np.ndarray:
    return np.array([values], dtype=np.float32)


@pytest.mark.parametrize("model", ["native", "triton", "onnx"])
def test_requests_of_different_lengths_share_a_batch(serving: Running, model: str) -> None:
    arrays = _floats(1), _floats(2, 3, 4), _floats(5, 6)

    answers = _together(serving, _http, model, *arrays)
    more = _together(serving, _grpc, model, *arrays)

    assert _batches(serving, model) == [(3, 2)]
    for given in (answers, more):
        assert [answer("double").tolist() for answer in given] == [[[2]], [[4, 6, 8]], [[10, 12]]]
        assert [answer("count").tolist() for answer in given] == [[[1]], [[3]], [[2]]]


def test_a_request_of_several_items_counts_with_all_of_them(serving: Running) -> None:
    before = dict(_batches(serving, "native"))
    pair = np.arange(4, dtype=np.float32).reshape(2, 2)

    first, second = _together(serving, _http, "native", pair, _floats(7, 8, 9))

    assert first("double").tolist() == [[0, 2], [4, 6]]
    assert first("count").tolist() == [[2], [2]]
    assert second("count").tolist() == [[3]]
    assert dict(_batches(serving, "native"))[3] == before.get(3, 0) + 1


def test_clients_see_neither_batch_inputs_nor_flat_shapes(serving: Running) -> None:
    metadata = serving.ask("GET", "/v2/models/onnx").document
    refused = serving.ask(
        "POST",
        "/v2/models/onnx/infer",
        {"inputs": [{"name": "shapes", "datatype": "INT32", "shape": [1, 1], "data": [1]}]},
    )

    assert [(each["name"], each["shape"]) for each in metadata["inputs"]] == [("x", [-1, -1])]
    assert (refused.status, "unexpected inference input 'shapes'" in refused.error) == (400, True)


def test_the_example_of_the_page_is_a_model(serving: Running) -> None:
    ids = (np.array([values], dtype=np.int32) for values in ([1, 2], [3], [4, 5, 6]))

    answers = _together(serving, _http, "lookup", *ids)

    assert [answer("VALUES").tolist() for answer in answers] == [[[2, 4]], [[3]], [[12, 15, 18]]]
    assert _batches(serving, "lookup") == [(3, 1)]
