"""OpenVINO models made in code, and the backend that loads them without a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino.opset13 as ops
import pytest

from naiad_openvino.backend import OpenVinoBackend
from naiad_testing.workbench import Workbench


class Zoo:
    """Makes models."""

    def add_sub(self, shape: Sequence[int] = (-1, 16)) -> Any:
        """SUM = A + B, DIFFERENCE = A - B."""
        a, b = self._input("A", shape), self._input("B", shape)
        return self._model([a, b], SUM=ops.add(a, b), DIFFERENCE=ops.subtract(a, b))

    def identity(self, kind: str = "f32", shape: Sequence[int] = (-1, 3)) -> Any:
        """OUT = IN."""
        sent = self._input("IN", shape, getattr(openvino.Type, kind))
        return self._model([sent], OUT=ops.result(sent))

    def positive(self, shape: Sequence[int]) -> Any:
        """OUT = IN where it is positive, else 0."""
        sent = self._input("IN", shape)
        return self._model([sent], OUT=ops.relu(sent))

    def double(self, shape: Sequence[int] = (-1, 3)) -> Any:
        """OUT = IN + IN."""
        sent = self._input("IN", shape)
        return self._model([sent], OUT=ops.add(sent, sent))

    def in_fours(self) -> Any:
        """OUT = IN, FP32[4, 16], as FP32[4, 4, 4]: the shape is written into the graph, so that no batch can vary."""
        sent = self._input("IN", (4, 16))
        return self._model([sent], OUT=ops.reshape(sent, ops.constant(np.array([4, 4, 4], np.int64)), False))

    def to_rows(self) -> Any:
        """OUT = IN in rows of 4: fails at run time for a number of elements that 4 does not divide."""
        sent = self._input("IN", (-1, -1))
        return self._model([sent], OUT=ops.reshape(sent, ops.constant(np.array([-1, 4], np.int64)), False))

    def accumulator(self) -> Any:
        """A model of sequences: OUT = IN + STATE where the sequence does not start, and STATE_OUT = OUT."""
        names = ("IN", "START", "STATE")
        sent, start, state = (self._input(name, (-1, 1)) for name in names)
        kept = ops.multiply(state, ops.subtract(ops.constant(np.float32(1)), start))
        out = ops.add(sent, kept)
        return self._model([sent, start, state], OUT=out, STATE_OUT=ops.add(out, ops.constant(np.float32(0))))

    def _input(self, name: str, shape: Sequence[int], kind: Any = openvino.Type.f32) -> Any:
        parameter = ops.parameter(openvino.PartialShape(list(shape)), kind)
        parameter.output(0).get_tensor().set_names({name})
        parameter.friendly_name = name
        return parameter

    def _model(self, inputs: list[Any], **outputs: Any) -> Any:
        for name, node in outputs.items():
            node.output(0).get_tensor().set_names({name})
        return openvino.Model(list(outputs.values()), inputs, "model")


def write(workbench: Workbench, model: Any) -> None:
    """Write the model in OpenVINO's own format."""
    openvino.save_model(model, str(workbench.path("model.xml")), compress_to_fp16=False)


class OpenVinoWorkbench(Workbench):
    """Writes models as well."""

    def write(self, model: Any) -> None:
        """The model in OpenVINO's own format."""
        write(self, model)


@pytest.fixture
def zoo() -> Zoo:
    return Zoo()


@pytest.fixture
def workbench(tmp_path: Path) -> OpenVinoWorkbench:
    return OpenVinoWorkbench(tmp_path / "m", OpenVinoBackend())
