"""Models whose requests have something to tell of themselves."""

from pathlib import Path

from . import models

ADD = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=8)
def add(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return x + 1
"""
_COUNT = """
from collections.abc import Iterator

from naiad_custom import FP32, Array, model

@model
def count(x: Array[FP32, 1]) -> Iterator[Array[FP32, 1]]:
    for number in range(int(x[0])):
        yield x + number
"""
_SEES = """
import json

import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([], parameters={"seen": request.parameters()}) for request in requests]
"""
_CALLS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(pb_utils.get_input_tensor_by_name(each, "x")) for each in requests]

    def _answer(self, x):
        asked = pb_utils.InferenceRequest(model_name="add", inputs=[x], requested_output_names=["output"])
        return pb_utils.InferenceResponse(asked.exec().output_tensors())
"""
_AGAIN = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.seen = False

    def execute(self, requests):
        self.seen = not self.seen
        if self.seen:
            requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return [None]
        return [pb_utils.InferenceResponse([])]
"""
_COMPOSED = """
platform: "ensemble" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
ensemble_scheduling {
  step { model_name: "add" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "output" value: "z" } }
  step {
    model_name: "cached" model_version: -1 input_map { key: "x" value: "z" } output_map { key: "output" value: "y" }
  }
}
"""
_INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }'
_PAIRS = "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 30000000 }"


def write_all(repository: Path) -> None:
    """Write them."""
    models.write(repository, "add", ADD)
    models.write(repository, "pairs", ADD, f'backend: "python" {_PAIRS}')
    models.write(repository, "count", _COUNT, 'backend: "python" model_transaction_policy { decoupled: true }')
    models.write(repository, "sees", _SEES, f'backend: "python" {_INPUT}')
    models.write(repository, "cached", ADD, 'backend: "python" response_cache { enable: true }')
    models.write(repository, "sums", ADD, 'backend: "python" sequence_batching { direct { } }')
    output = 'output { name: "output" data_type: TYPE_FP32 dims: [ 1 ] }'
    models.write(repository, "calls", _CALLS, f'backend: "python" max_batch_size: 8 {_INPUT} {output}')
    again = "max_batch_size: 1 sequence_batching { iterative_sequence: true }"
    models.write(repository, "again", _AGAIN, f'backend: "python" {again} {_INPUT}')
    (repository / "composed" / "1").mkdir(parents=True)
    (repository / "composed" / "config.pbtxt").write_text(_COMPOSED)
