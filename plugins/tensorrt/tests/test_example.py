"""The example of an engine: it is built in truth, and its configuration fits what is built."""

import importlib.util
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from naiad_config import DataType
from naiad_tensorrt.runtime import RTX_MAGIC

from .conftest import described, tensor

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "tensorrt"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("tensorrt_example", EXAMPLE / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small(kind="Relu"):
    """`y` = Relu(`x`), FP32 [batch, 4]."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"])], "small", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_the_script_builds_an_engine_from_an_onnx_file(example, tmp_path, monkeypatch, capsys):
    onnx.save(small(), tmp_path / "small.onnx")
    plan = tmp_path / "m" / "1" / "model.plan"
    monkeypatch.setattr("sys.argv", ["build.py", str(tmp_path / "small.onnx"), str(plan)])

    assert example.main() == 0

    assert plan.read_bytes()[:4] == RTX_MAGIC
    assert f"wrote {plan}" in capsys.readouterr().out


def test_a_model_that_tensorrt_does_not_know_says_why(example):
    with pytest.raises(SystemExit, match="NoSuchOperator"):
        example.build(example.builder(), small("NoSuchOperator").SerializeToString())


def test_without_a_builder_the_script_says_what_to_install(example, monkeypatch, capsys):
    monkeypatch.setattr(example, "builder", lambda: None)
    monkeypatch.setattr("sys.argv", ["build.py"])

    assert example.main() == 1
    assert "pip install 'naiad-tensorrt[tensorrt]'" in capsys.readouterr().out


def test_the_configuration_of_the_example_fits_its_profiles(example, workbench, machine):
    machine.description = described(
        tensor("image", -1, 32, 32, 3, kind="UINT8"),
        tensor("probabilities", -1, 9, output=True),
        batches=example.BATCHES,
    )

    served = workbench.load((EXAMPLE / "models" / "shapes_trt" / "config.pbtxt").read_text())

    options = machine.executors[0].options
    assert served.config.input[0].data_type is DataType.TYPE_UINT8
    assert options.profiles == (0, 1)
    assert [(graph.profile, graph.lower["image"][0], graph.shapes["image"][0]) for graph in options.graphs] == [
        (0, 1, 8),
        (1, 1, 8),
        (1, 64, 64),
    ]
