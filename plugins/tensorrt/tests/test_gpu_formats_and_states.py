"""Formats other than rows of elements, and sequences with a state, on a GPU: see `test_gpu.py`."""

import numpy as np
import pytest

import naiad_scheduler_sequence
from naiad import hookimpl
from naiad_tensorrt.backend import TensorRtBackend
from naiad_tensorrt.engines import Opening
from naiad_tensorrt.options import ExecutionOptions, GraphSpec
from naiad_testing import serve

from .execution import built
from .test_gpu import ON_GPU, machine, trt

__all__ = ["machine", "trt"]  # the fixtures

pytestmark = pytest.mark.gpu

SUM = f"""
max_batch_size: 4
{ON_GPU}
input [ {{ name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }} ]
output [ {{ name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }} ]
sequence_batching {{
  control_input [
    {{ name: "START" control [ {{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }} ] }}
  ]
  state [ {{ input_name: "STATE" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] }} ]
}}
"""


def executor(machine, plan, **options):
    opened = machine.open_engine(plan, "m", 0, Opening())
    return opened, machine.executor(opened, ExecutionOptions(**options), 0)


class Plugin:
    """The plugin, on a machine."""

    def __init__(self, machine):
        self._machine = machine

    @hookimpl
    def naiad_backends(self):
        return [TensorRtBackend(self._machine)]


@pytest.mark.parametrize(("form", "kind"), [("HWC8", "HALF"), ("CHW2", "HALF"), ("CHW32", "FLOAT")])
def test_tensors_are_laid_out_as_the_engine_wants_them(trt, machine, form, kind):
    opened, runs = executor(machine, built.image_adder(trt, form, kind))
    images = np.arange(24).reshape(2, 3, 2, 2).astype(np.float16 if kind == "HALF" else np.float32)

    answer = runs.run({"IN": images}, 0)
    runs.close()

    assert {tensor.format for tensor in opened.description.tensors} == {form}
    assert answer["OUT"].tolist() == (images * 2).tolist()


@pytest.mark.parametrize("strategy", ["STATIC", "ON_PROFILE_CHANGE", "USER_MANAGED"])
def test_graphs_and_profiles_take_turns(trt, machine, strategy):
    graph = GraphSpec(0, {"A": (4, 4), "B": (4, 4)}, {"A": (1, 4), "B": (1, 4)}, {})
    _, runs = executor(machine, built.add_sub(trt), profiles=(0, 1), graphs=(graph,), allocation_strategy=strategy)

    for rows in (4, 2, 8, 20, 4, 32, 3):
        a, b = np.full((rows, 4), rows, np.float32), np.ones((rows, 4), np.float32)
        answer = runs.run({"A": a, "B": b}, 1 if rows > 8 else 0)
        assert answer["SUM"].tolist() == [[rows + 1.0] * 4] * rows
    runs.close()


def test_an_output_that_stayed_on_the_gpu_is_the_next_input(trt, machine):
    _, runs = executor(machine, built.add_sub(trt))
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((2, 4), np.float32)

    kept = [runs.run({"A": a + step, "B": b}, 0, stay=("SUM",))["SUM"] for step in range(3)]
    answer = runs.run({"A": kept, "B": np.concatenate([b, b, b])}, 0)
    runs.close()

    assert answer["SUM"].tolist() == np.concatenate([a + 2 + step for step in range(3)]).tolist()


def test_the_server_keeps_the_state_of_sequences(trt, machine, tmp_path):
    model = tmp_path / "m"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.plan").write_bytes(built.accumulator(trt))
    (model / "config.pbtxt").write_text(SUM)

    with serve(model, plugins=[Plugin(machine), naiad_scheduler_sequence]) as client:
        answers = [_ask(client, sequence, value, start) for sequence, value, start in STEPS]

    assert answers == [1.0, 10.0, 3.0, 30.0, 6.0]


STEPS = [(1, 1, True), (2, 10, True), (1, 2, False), (2, 20, False), (1, 3, False)]


def _ask(client, sequence, value, start):
    request = client.request(IN=np.array([[value]], np.float32))
    request.correlation_id, request.sequence_start = sequence, start
    return float(client.send(request).outputs["OUT"].array.ravel()[0])
