"""ONNX models made in code, and the backend that loads them without a server."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from naiad.backend import ModelContext
from naiad_config import ModelConfig
from naiad_onnx.backend import OnnxBackend
from naiad_testing.workbench import Loaded, Workbench, batch_of

RAGGED = """
    max_batch_size: 8
    input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
    output { name: "DOUBLE" data_type: TYPE_FP32 dims: [ -1 ] }
    output { name: "SUM" data_type: TYPE_FP32 dims: [ 1 ] }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "OFFSETS" data_type: TYPE_INT32
                  source_input: "IN" }
    batch_output { target_name: "DOUBLE" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "IN" }
"""
"""The configuration of `ragged`."""


def value(name: str, shape: Any, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], initializers: tuple[Any, ...] = ()) -> Any:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def add_sub(shape: Any = ("n", 16), kind: int = TensorProto.FLOAT) -> Any:
    """SUM = A + B, DIFFERENCE = A - B."""
    nodes = [helper.make_node("Add", ["A", "B"], ["SUM"]), helper.make_node("Sub", ["A", "B"], ["DIFFERENCE"])]
    inputs = [value("A", shape, kind), value("B", shape, kind)]
    return model_of(nodes, inputs, [value("SUM", shape, kind), value("DIFFERENCE", shape, kind)])


def identity(shape: Any, kind: int = TensorProto.FLOAT) -> Any:
    """OUT = IN."""
    node = helper.make_node("Identity", ["IN"], ["OUT"])
    return model_of([node], [value("IN", shape, kind)], [value("OUT", shape, kind)])


def given_back(shape: Any, kind: int = TensorProto.FLOAT) -> Any:
    """OUT = IN, and IN itself is an output too."""
    node = helper.make_node("Identity", ["IN"], ["OUT"])
    return model_of([node], [value("IN", shape, kind)], [value("IN", shape, kind), value("OUT", shape, kind)])


def gather() -> Any:
    """OUT = TABLE[INDEX] of a table of four rows: fails at run time for an index of 4 and more."""
    table = helper.make_tensor("TABLE", TensorProto.FLOAT, [4], [10.0, 11.0, 12.0, 13.0])
    node = helper.make_node("Gather", ["TABLE", "INDEX"], ["OUT"])
    inputs = [value("INDEX", ["n", 1], TensorProto.INT64)]
    return model_of([node], inputs, [value("OUT", ["n", 1])], (table,))


def with_default() -> Any:
    """OUT = IN * SCALE, where SCALE may be left out and is 2 then."""
    scale = helper.make_tensor("SCALE", TensorProto.FLOAT, [1], [2.0])
    node = helper.make_node("Mul", ["IN", "SCALE"], ["OUT"])
    return model_of([node], [value("IN", [3]), value("SCALE", [1])], [value("OUT", [3])], (scale,))


def accumulator() -> Any:
    """A model of sequences: OUT = IN + STATE * (1 - START), and STATE_OUT = OUT."""
    one = helper.make_tensor("ONE", TensorProto.FLOAT, [1], [1.0])
    nodes = [
        helper.make_node("Sub", ["ONE", "START"], ["goes_on"]),
        helper.make_node("Mul", ["STATE", "goes_on"], ["old"]),
        helper.make_node("Add", ["IN", "old"], ["OUT"]),
        helper.make_node("Identity", ["OUT"], ["STATE_OUT"]),
    ]
    outputs = [value("OUT", ["n", 1]), value("STATE_OUT", ["n", 1])]
    return model_of(nodes, [value(name, ["n", 1]) for name in ("IN", "START", "STATE")], outputs, (one,))


def dense(rows: int = 64, columns: int = 64) -> Any:
    """OUT = IN @ WEIGHTS, weights of ones."""
    weights = numpy_helper.from_array(np.ones((rows, columns), np.float32), "WEIGHTS")
    node = helper.make_node("MatMul", ["IN", "WEIGHTS"], ["OUT"])
    return model_of([node], [value("IN", ["n", rows])], [value("OUT", ["n", columns])], (weights,))


def ragged() -> Any:
    """DOUBLE = 2 * IN, and for each request the sum of its elements: its part of IN lies between two of OFFSETS."""
    zero = helper.make_tensor("ZERO", TensorProto.FLOAT, [1], [0.0])
    numbers = {"AXIS": 0, "FIRST": 0, "SECOND": 1, "LAST": -1, "END": 2**31}
    constants = [helper.make_tensor(name, TensorProto.INT64, [1], [number]) for name, number in numbers.items()]
    nodes = [
        helper.make_node("Add", ["IN", "IN"], ["DOUBLE"]),
        helper.make_node("CumSum", ["IN", "AXIS"], ["sums"]),
        helper.make_node("Concat", ["ZERO", "sums"], ["from_zero"], axis=0),
        helper.make_node("Gather", ["from_zero", "OFFSETS"], ["at"]),
        helper.make_node("Slice", ["at", "SECOND", "END"], ["ends"]),
        helper.make_node("Slice", ["at", "FIRST", "LAST"], ["starts"]),
        helper.make_node("Sub", ["ends", "starts"], ["flat"]),
        helper.make_node("Unsqueeze", ["flat", "SECOND"], ["SUM"]),
    ]
    inputs = [value("IN", ["elements"]), value("OFFSETS", ["requests_and_one"], TensorProto.INT32)]
    return model_of(nodes, inputs, [value("DOUBLE", ["elements"]), value("SUM", ["n", 1])], (zero, *constants))


def sequence_output() -> Any:
    """OUT = IN, and LIST, a sequence of tensors, which no client can take."""
    nodes = [helper.make_node("Identity", ["IN"], ["OUT"]), helper.make_node("SequenceConstruct", ["IN"], ["LIST"])]
    listed = helper.make_tensor_sequence_value_info("LIST", TensorProto.FLOAT, None)
    return model_of(nodes, [value("IN", ["n", 2])], [value("OUT", ["n", 2]), listed])


@pytest.fixture(scope="session")
def models() -> SimpleNamespace:
    """The functions that make models, by name."""
    functions = (add_sub, identity, given_back, gather, with_default, accumulator, dense, ragged, sequence_output)
    return SimpleNamespace(**{function.__name__: function for function in (*functions, model_of, value)})


@dataclass
class OnnxWorkbench:
    """Writes models into a model folder, and completes and loads them with the backend."""

    folder: Workbench

    @property
    def directory(self) -> Path:
        return self.folder.directory

    @property
    def backend(self) -> OnnxBackend:
        return self.folder.backend

    def context(self, config: str = "", settings: Mapping[str, str] | None = None) -> ModelContext:
        return self.folder.context(config, settings)

    def write(self, proto: Any, file: str = "model.onnx") -> Path:
        path = self.folder.path(file)
        path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
        return path

    def complete(self, proto: Any, config: str = "", settings: Mapping[str, str] | None = None) -> ModelConfig:
        self.write(proto)
        return self.folder.complete(config, settings)

    def load(self, proto: Any, config: str = "", settings: Mapping[str, str] | None = None) -> Loaded:
        """The model with its instances."""
        self.write(proto)
        return self.load_files(config, settings)

    def load_files(self, config: str = "", settings: Mapping[str, str] | None = None) -> Loaded:
        return self.folder.load(config, settings)


@pytest.fixture
def workbench(tmp_path: Path) -> OnnxWorkbench:
    return OnnxWorkbench(Workbench(tmp_path / "m", OnnxBackend()))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sessions that were opened, in order."""
    sessions: list[Any] = []

    class Recorded(onnxruntime.InferenceSession):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            sessions.append(self)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Recorded)
    return sessions


@pytest.fixture(scope="session")
def request_batch() -> Any:
    """A batch of requests, one a mapping of inputs."""
    return batch_of


@pytest.fixture(scope="session")
def float_array() -> Any:
    """A float32 array from nested lists."""
    return lambda values: np.asarray(values, dtype=np.float32)


@pytest.fixture(scope="session")
def save_with_external_weights() -> Any:
    """Write a model whose weights lie in a file `weights.bin` beside it."""

    def save(proto: Any, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        assert (path.parent / "weights.bin").stat().st_size

    return save
