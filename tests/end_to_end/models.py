"""Models of every kind, written into a repository: custom functions, Triton-style model.py, and ONNX."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from .running import Running

ECHO = """
from naiad_custom import FP32, Array, model

@model
def echo(x: Array[FP32, -1]) -> Array[FP32, -1]:
    return x
"""

ADD_SUB = """
from typing import NamedTuple

from naiad_custom import FP32, Array, model

class Sums(NamedTuple):
    SUM: Array[FP32, 4]
    DIFFERENCE: Array[FP32, 4]

@model(max_batch_size=8)
def add_sub(A: Array[FP32, 4], B: Array[FP32, 4]) -> Sums:
    return Sums(A + B, A - B)
"""

TRITON_ADD_SUB = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        a = pb_utils.get_input_tensor_by_name(request, "A").as_numpy()
        b = pb_utils.get_input_tensor_by_name(request, "B").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", a + b), pb_utils.Tensor("DIFFERENCE", a - b)])
"""

TELLING = """
import json

import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        parameters = json.loads(request.parameters())
        report = {
            "id": request.request_id(),
            "parameters": parameters,
            "timeout": request.timeout(),
            "outputs": sorted(request.requested_output_names()),
        }
        text = np.array([json.dumps(report)], dtype=object)
        given = {name: value for name, value in parameters.items() if not isinstance(value, float)}
        return pb_utils.InferenceResponse([pb_utils.Tensor("REPORT", text)], parameters=given)
"""


def write(repository: Path, name: str, source: str | bytes, config: str = "", version: int = 1) -> Path:
    """A model folder with that model.py, and with that configuration or none; returns the folder."""
    folder = repository / name
    (folder / str(version)).mkdir(parents=True, exist_ok=True)
    content = source.encode() if isinstance(source, str) else source
    (folder / str(version) / "model.py").write_bytes(content)
    (folder / "config.pbtxt").unlink(missing_ok=True)
    if config:
        (folder / "config.pbtxt").write_text(config)
    return folder


@contextmanager
def loaded(server: Running, name: str, source: str, config: str = "") -> Iterator[None]:
    """The server has that model meanwhile."""
    write(server.repository, name, source, config)
    answer = server.load(name)
    assert answer.status == 200, answer.body
    try:
        yield
    finally:
        server.unload(name)


def write_onnx(repository: Path, name: str, model: Any, config: str = "") -> Path:
    """A model folder with that ONNX model; returns the folder."""
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    onnx.save(model, folder / "1" / "model.onnx")
    if config:
        (folder / "config.pbtxt").write_text(config)
    return folder


def tensors(side: str, names: dict[str, str], dims: str) -> str:
    """One side of a configuration, input or output: tensors by name, all of these dims."""
    listed = (
        f'{{ name: "{name}" data_type: TYPE_{kind.replace("BYTES", "STRING")} dims: [{dims}] }}'
        for name, kind in names.items()
    )
    return f"{side} [ {', '.join(listed)} ]\n"


def onnx_model(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], constants: list[Any]) -> Any:
    """A model; inputs and outputs are given as (element type, shape) by name."""
    listed = [
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in each.items()]
        for each in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "graph", *listed, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def onnx_add_sub() -> Any:
    nodes = [helper.make_node("Add", ["A", "B"], ["SUM"]), helper.make_node("Sub", ["A", "B"], ["DIFFERENCE"])]
    kind = (TensorProto.FLOAT, ["n", 4])
    return onnx_model(nodes, {"A": kind, "B": kind}, {"SUM": kind, "DIFFERENCE": kind}, [])


def onnx_scores() -> Any:
    """scores = x * [1, 2, 3, 4]."""
    constant = helper.make_tensor("weights", TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    node = helper.make_node("Mul", ["x", "weights"], ["scores"])
    kind = (TensorProto.FLOAT, ["n", 4])
    return onnx_model([node], {"x": kind}, {"scores": kind}, [constant])


def triton_config(inputs: dict[str, str], outputs: dict[str, str], dims: str, more: str = "") -> str:
    return f'backend: "python"\n{tensors("input", inputs, dims)}{tensors("output", outputs, dims)}{more}'


def write_all(repository: Path) -> None:
    """A sound model of each kind."""
    sums = {"SUM": "FP32", "DIFFERENCE": "FP32"}
    write(repository, "echo", ECHO)
    write(repository, "custom_add_sub", ADD_SUB)
    config = triton_config({"A": "FP32", "B": "FP32"}, sums, "4", "max_batch_size: 8 dynamic_batching {}")
    write(repository, "triton_add_sub", TRITON_ADD_SUB, config)
    write_onnx(repository, "onnx_add_sub", onnx_add_sub(), "max_batch_size: 8")
    labelled = write_onnx(repository, "scores", onnx_scores(), 'output { name: "scores" label_filename: "labels.txt" }')
    (labelled / "labels.txt").write_text("zero\none\ntwo\n")
    write(repository, "telling", TELLING, triton_config({"x": "FP32"}, {"REPORT": "BYTES"}, "1"))
