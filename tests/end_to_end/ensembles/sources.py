"""Models and the ensembles that join them: native functions, Triton's model.py, ONNX, streams and sequences."""

from pathlib import Path

from .. import models
from ..sequences import sources as sequences

_PLUS = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=8)
def plus(x: Array[FP32, 4]) -> Array[FP32, 4]:
    return x + 1
"""

_TRITON_TIMES = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x")
        if x is None or float(x.as_numpy().flat[0]) < 0:
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError("below zero", pb_utils.TritonError.INVALID_ARG)
            )
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x.as_numpy() * 2)])
"""
_TRITON_CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""

_TURN = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=8)
def turn(x: Array[FP32, 2, 2]) -> Array[FP32, 2, 2]:
    return x.swapaxes(1, 2).copy()
"""

_TRITON_HALF = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        outputs = [pb_utils.Tensor("y", x)] if x.flat[0] >= 0 else []
        return pb_utils.InferenceResponse([*outputs, *([pb_utils.Tensor("z", x)] if x.flat[0] <= 0 else [])])
"""
_HALF_CONFIG = f'{_TRITON_CONFIG}output [ {{ name: "z" data_type: TYPE_FP32 dims: [ 4 ] }} ]'

_COUNT = """
from collections.abc import Iterator

import numpy as np
from naiad_custom import FP32, INT32, Array, model

@model(outputs="y")
def count(times: Array[INT32, 1], x: Array[FP32, 4]) -> Iterator[Array[FP32, 4]]:
    for number in range(int(times[0])):
        yield x + np.float32(number)
"""


def step(model: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """A step; the keys are the model's names."""
    maps = [
        f'{kind} {{ key: "{key}" value: "{value}" }}'
        for kind, pairs in (("input_map", inputs), ("output_map", outputs))
        for key, value in pairs.items()
    ]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }}'


def ensemble(inputs: str, outputs: str, *steps: str, batch: int = 8) -> str:
    """The configuration of an ensemble; tensors are `NAME TYPE DIMS`, or `NAME TYPE DIMS RESHAPE`, with commas between.

    The sizes of a reshape are separated by `x`.
    """
    return "\n".join(
        [
            f'platform: "ensemble" max_batch_size: {batch}',
            *(_tensor("input", each) for each in inputs.split(",")),
            *(_tensor("output", item) for item in outputs.split(",")),
            f"ensemble_scheduling {{ {' '.join(steps)} }}",
        ]
    )


def write(repository: Path, name: str, config: str) -> Path:
    """The folder of an ensemble."""
    (repository / name / "1").mkdir(parents=True, exist_ok=True)
    (repository / name / "config.pbtxt").write_text(config)
    return repository / name


def write_all(repository: Path, events: Path) -> None:
    """Every model and every ensemble of these tests."""
    sequences.write_all(repository, events)
    models.write(repository, "echo", models.ECHO)
    models.write(repository, "plus_one", _PLUS)
    models.write(repository, "times_two", _TRITON_TIMES, _TRITON_CONFIG)
    models.write(repository, "count", _COUNT)
    scores = 'output [ { name: "scores" data_type: TYPE_FP32 dims: [ 4 ] } ]'
    models.write_onnx(repository, "scores", models.onnx_scores(), f"max_batch_size: 8\n{scores}")
    once = [
        step("plus_one", {"x": "X"}, {"output": "more"}),
        step("times_two", {"x": "more"}, {"y": "twice"}),
        step("scores", {"x": "twice"}, {"scores": "SCORES"}),
        step("plus_one", {"x": "twice"}, {"output": "MORE"}),
    ]
    write(repository, "scoring", ensemble("X FP32 4", "SCORES FP32 4,MORE FP32 4", *once))
    streamed = [
        step("count", {"times": "TIMES", "x": "X"}, {"y": "counted"}),
        step("times_two", {"x": "counted"}, {"y": "Y"}),
    ]
    write(repository, "counting", ensemble("TIMES INT32 1,X FP32 4", "Y FP32 4", *streamed, batch=0))
    models.write(repository, "turn", _TURN)
    turning = [step("turn", {"x": "X"}, {"output": "t"}), step("turn", {"x": "t"}, {"output": "Y"})]
    write(repository, "turning", ensemble("X FP32 4 2x2", "t FP32 4 2x2,Y FP32 4 2x2", *turning))
    models.write(repository, "half", _TRITON_HALF, _HALF_CONFIG)
    halved = step("half", {"x": "X"}, {"y": "Y", "z": "Z"})
    write(repository, "halving", ensemble("X FP32 4", "Y FP32 4,Z FP32 4", halved))
    for kind in ("triton_direct", "native_oldest", "onnx_direct"):
        summing = [step(kind, {"x": "X"}, {"y": "Y"})]
        write(repository, f"summing_{kind}", ensemble("X FP32 1", "Y FP32 1", *summing, batch=4))


def _tensor(side: str, written: str) -> str:
    name, datatype, dims, *reshape = written.split()
    inner = f"reshape {{ shape: [ {reshape[0].replace('x', ', ')} ] }}" if reshape else ""
    return f'{side} [ {{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] {inner} }} ]'
