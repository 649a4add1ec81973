"""A request that is alone goes to ONNX Runtime and PyTorch and back without a copy: 8 MB leave no trace in Python.

OpenVINO and TensorFlow write to memory that numpy counts; the tests of their plugins compare addresses. Modules of
PyTorch in Python get copies, since they may write to their inputs.
"""

import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad_tensors.tensors import Tensor
from naiad_testing.workbench import Loaded, Workbench

ROWS = 1 << 11
CONFIG = """max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 1024 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 1024 ] } ]
"""


def onnx_model(folder: Path) -> Loaded:
    onnx = pytest.importorskip("onnx")
    from naiad_onnx.backend import OnnxBackend

    bench = Workbench(folder, OnnxBackend())
    _write_onnx(onnx, bench.path("model.onnx"))
    return bench.load(CONFIG)


def torch_model(folder: Path) -> Loaded:
    torch = pytest.importorskip("torch")
    from naiad_torch.backend import TorchBackend

    class Negative(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return -x

    bench = Workbench(folder, TorchBackend())
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
        torch.jit.trace(Negative(), torch.ones(2, 1024)).save(bench.path("model.pt"))
    return bench.load(f'platform: "pytorch_libtorch" {CONFIG}')


@pytest.mark.parametrize("load", [onnx_model, torch_model])
def test_a_request_that_is_alone_is_not_copied(load: Callable[[Path], Loaded], tmp_path: Path) -> None:
    served = load(tmp_path / "m")
    array = np.ones((ROWS, 1024), np.float32)
    array.flags.writeable = False  # as a view on a received buffer is
    sent: Any = {"x": Tensor.of("x", array)}
    served.execute(sent)

    tracemalloc.start()
    try:
        answer = served.execute(sent)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert np.asarray(answer["y"])[-1, -1] == -1
    assert peak < array.nbytes / 16


def _write_onnx(onnx: Any, path: Path) -> None:
    """y = -x."""
    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", 1024]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "graph", tensors[:1], tensors[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    path.write_bytes(model.SerializeToString())
