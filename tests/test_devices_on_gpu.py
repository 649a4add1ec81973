"""An ensemble of PyTorch and ONNX models on a real GPU: nothing comes to the host between its steps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad.backend import Batch
from naiad_tensors.devices import DeviceTensor
from naiad_testing.serving import Client, serve

from .written import write_model

pytestmark = pytest.mark.gpu

ON_GPU = "instance_group { kind: KIND_GPU gpus: [ 0 ] }"
TENSORS = """max_batch_size: 8 dynamic_batching { }
input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""
ENSEMBLE = """platform: "ensemble" max_batch_size: 8
input { name: "A" data_type: TYPE_FP32 dims: 4 } output { name: "D" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step { model_name: "double" model_version: -1 input_map { key: "x" value: "A" } output_map { key: "y" value: "B" } }
  step { model_name: "negative" model_version: -1 input_map { key: "x" value: "B" } output_map { key: "y" value: "C" } }
  step { model_name: "double" model_version: -1 input_map { key: "x" value: "C" } output_map { key: "y" value: "D" } }
}
"""
MODULE = """import torch


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2
"""


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the tensors that came to the host after their instance had answered."""
    shapes: list[tuple[int, ...]] = []
    array = DeviceTensor.array.fget  # type: ignore[attr-defined]

    def counted(tensor: DeviceTensor) -> np.ndarray:
        if not tensor.is_on_host_too:
            shapes.append(tensor.shape)
        return array(tensor)  # type: ignore[no-any-return]

    monkeypatch.setattr(DeviceTensor, "array", property(counted))
    return shapes


@pytest.fixture
def resident(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The inputs that a backend took where they were, on the GPU."""
    names: list[str] = []
    real = Batch.resident

    def noted(batch: Batch, name: str, devices: Any) -> Any:
        tensors = real(batch, name, devices)
        names.extend([name] if tensors is not None else [])
        return tensors

    monkeypatch.setattr(Batch, "resident", noted)
    return names


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    onnx = pytest.importorskip("onnx")
    models = tmp_path / "models"
    configs = {
        "double": f'backend: "pytorch" runtime: "model.py" {TENSORS} {ON_GPU}',
        "negative": f'backend: "onnxruntime" {TENSORS} {ON_GPU}',
        "all": ENSEMBLE,
    }
    for name, config in configs.items():
        write_model(models, name, MODULE if name == "double" else "", config)
    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", 4]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "graph", tensors[:1], tensors[1:])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    (models / "negative" / "1" / "model.onnx").write_bytes(proto.SerializeToString())
    with serve(models) as client:
        yield client


def test_tensors_stay_on_the_gpu_between_frameworks(
    client: Client, resident: list[str], brought: list[tuple[int, ...]]
) -> None:
    array = np.arange(8, dtype=np.float32).reshape(2, 4)

    answer = client["all"].infer(A=array)["D"]

    assert answer.tolist() == (array * -4).tolist()
    assert resident == ["x", "x"]  # the first step gets its own from the host
    assert brought == []
