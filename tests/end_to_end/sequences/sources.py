"""Models of sequences: each adds up what its sequences send, and keeps the sums in another way."""

from pathlib import Path
from typing import Any

from onnx import TensorProto

from .. import models

DIRECT, OLDEST = "direct {}", "oldest { max_candidate_sequences: 8 }"

_TRITON = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        ready = pb_utils.get_input_tensor_by_name(request, "READY").as_numpy()
        sequence = request.correlation_id()
        if bool(ready[0, 0]) != bool(sequence):
            raise ValueError(f"READY is {ready} in the row of sequence {sequence!r}")
        if request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START:
            self.sums[sequence] = 0.0
        total = self.sums[sequence] + x if sequence else x
        self.sums[sequence] = total.copy()
        if request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END:
            del self.sums[sequence]
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", total)])
"""

_NATIVE = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=4, outputs=("y", "sum_after"))
def add(x: Array[FP32, 1], sum_before: Array[FP32, 1]) -> tuple[Array[FP32, 1], Array[FP32, 1]]:
    total = sum_before + x
    return total, total
"""


_READY = (
    'control_input [ { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] } ]'
)
_IDLE = "max_sequence_idle_microseconds: 60000000"
_STATE = '{{ input_name: "{0}" output_name: "{1}" data_type: TYPE_FP32 dims: [ 1 ] {2} }}'


def write_all(repository: Path, _events: Path) -> None:
    """A model of each kind that adds up, with either strategy."""
    models.write(repository, "echo", models.ECHO)
    batching = f"sequence_batching {{ {DIRECT} {_IDLE} {_READY} }}"
    config = models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1", f"max_batch_size: 4\n{batching}")
    models.write(repository, "triton_direct", _TRITON, config)
    state = _STATE.format("sum_before", "sum_after", "")
    models.write(repository, "native_oldest", _NATIVE, f"sequence_batching {{ {OLDEST} {_IDLE} state [ {state} ] }}")
    state = _STATE.format("STATE", "STATE_AFTER", _FROM_ZERO)
    batching = f"sequence_batching {{ {DIRECT} {_IDLE} state [ {state} ] }}"
    models.write_onnx(repository, "onnx_direct", onnx_adder(), f"max_batch_size: 4\n{batching}")


_FROM_ZERO = 'initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true }'


def onnx_adder() -> Any:
    """y = STATE_AFTER = x + STATE."""
    from onnx import helper

    nodes = [
        helper.make_node("Add", ["x", "STATE"], ["STATE_AFTER"]),
        helper.make_node("Identity", ["STATE_AFTER"], ["y"]),
    ]
    kind = (TensorProto.FLOAT, ["n", 1])
    return models.onnx_model(nodes, {"x": kind, "STATE": kind}, {"y": kind, "STATE_AFTER": kind}, [])
