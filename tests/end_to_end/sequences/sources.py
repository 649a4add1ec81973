"""Models of sequences: each adds up what its sequences send, and keeps the sums in another way."""

from pathlib import Path
from typing import Any

from onnx import TensorProto

from .. import models
from ..gates import Gate

STRATEGIES = {"direct": "direct {}", "oldest": "oldest { max_candidate_sequences: 8 }"}

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

_TELLING = """
from pathlib import Path

from naiad.backend import Batch
from naiad_custom import FP32, Array, model

TOLD = Path({told!r})

@model(max_batch_size=4, outputs="y")
class Telling:
    def execute(self, x: Array[FP32, 1], batch: Batch) -> Array[FP32, 1]:
        {wait}
        return x

    def sequence_ended(self, correlation_id, reason):
        (TOLD / f"{{correlation_id}} {{reason}}").touch()
"""

_AGAIN = """
import json

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
AGAIN = pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE

class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))
        self.seen = {}

    def execute(self, requests):
        answers = [self._answer(request) for request in requests]
        return None if self.decoupled else answers

    def _answer(self, request):
        wanted = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0, 0]
        starts = request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
        sequence = request.correlation_id()  # 0 in a row without a request
        times = 1 if starts or not sequence else self.seen.pop(sequence) + 1
        over = times >= wanted or not sequence
        if not over:
            self.seen[sequence] = times
            request.set_release_flags(AGAIN)
        response = pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([[times]], np.float32))])
        if self.decoupled:
            request.get_response_sender().send(response, FINAL if over else 0)
            return None
        return response if over else None
"""

_READY = (
    'control_input [ { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] } ]'
)
_IDLE = "max_sequence_idle_microseconds: 60000000"
_STATE = '{{ input_name: "{0}" output_name: "{1}" data_type: TYPE_FP32 dims: [ 1 ] {2} }}'
_ONE = "instance_group [ { count: 1 } ]\n"


def write_all(repository: Path, told: Path) -> None:
    """Models that add up, each with either strategy; `short` tells in the folder `told` when a sequence is over.

    `again` sees a request as often as its `x` says, and answers with how often that was; `counts` tells it each time.
    """
    models.write(repository, "echo", models.ECHO)
    for strategy, written in STRATEGIES.items():
        batching = f"sequence_batching {{ {written} {_IDLE} %s }}"
        config = models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1", "max_batch_size: 4\n" + batching % _READY)
        models.write(repository, f"triton_{strategy}", _TRITON, config)
        state = f"state [ {_STATE.format('sum_before', 'sum_after', '')} ]"
        models.write(repository, f"native_{strategy}", _NATIVE, batching % state)
        state = f"state [ {_STATE.format('STATE', 'STATE_AFTER', _FROM_ZERO)} ]"
        models.write_onnx(repository, f"onnx_{strategy}", onnx_adder(), "max_batch_size: 4\n" + batching % state)
    shown = 'output [ { name: "y" }, { name: "STATE_AFTER" } ] max_batch_size: 4\n'
    models.write_onnx(repository, "onnx_shown", onnx_adder(), f"{shown} sequence_batching {{ {_IDLE} {state} }}")
    again = f"max_batch_size: 4 {_ONE} sequence_batching {{ iterative_sequence: true {_IDLE} }}"
    config = models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1", again)
    models.write(repository, "again", _AGAIN, config)
    models.write(repository, "counts", _AGAIN, config + "\nmodel_transaction_policy { decoupled: true }")
    short = "sequence_batching { max_sequence_idle_microseconds: 100000 }"
    models.write(repository, "short", _TELLING.format(told=str(told), wait="pass"), _ONE + short)


def write_waiting(repository: Path, told: Path, gate: Gate) -> None:
    """The model `waits`, which waits at the gate in each execution, and tells of sequences that are over."""
    source = _TELLING.format(told=str(told), wait="wait()") + gate.function("wait")
    models.write(repository, "waits", source, f"{_ONE} sequence_batching {{ {_IDLE} }}")


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
