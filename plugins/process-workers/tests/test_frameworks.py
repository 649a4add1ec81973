"""Models of other frameworks than ONNX Runtime in processes of their own."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from .conftest import Serve, children

ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
TENSORS = """
    input { name: "x" data_type: TYPE_FP32 dims: [-1, 4] } output { name: "y" data_type: TYPE_FP32 dims: [-1, 4] }
"""


def write_torchscript(version: Path) -> str:
    torch = pytest.importorskip("torch")
    pytest.importorskip("naiad_torch")
    torch.jit.trace(torch.nn.ReLU(), torch.ones(2, 4)).save(str(version / "model.pt"))
    return 'platform: "pytorch_libtorch"' + TENSORS


def write_openvino(version: Path) -> str:
    openvino = pytest.importorskip("openvino")
    pytest.importorskip("naiad_openvino")
    opset13 = pytest.importorskip("openvino.opset13")

    x = opset13.parameter([-1, 4], np.float32, name="x")
    x.output(0).set_names({"x"})
    y = opset13.relu(x)
    y.output(0).set_names({"y"})
    openvino.save_model(openvino.Model([y], [x], "relu"), version / "model.xml", compress_to_fp16=False)
    return 'backend: "openvino"' + TENSORS


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("write_model", [write_torchscript, write_openvino])
def test_models_of_other_frameworks_are_isolated_as_well(
    tmp_path: Path, served: Serve, write_model: Callable[[Path], str]
) -> None:
    folder = tmp_path / "models" / "relu"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(write_model(folder / "1") + ISOLATED)
    x = np.linspace(-1, 1, 20_000, dtype=np.float32).reshape(-1, 4)

    with served(folder) as client:
        assert len(children()) == 1
        assert np.array_equal(client.infer(x=x[:1])["y"], np.maximum(x[:1], 0))
        assert np.array_equal(client.infer(x=x)["y"], np.maximum(x, 0))
