"""Models and the ensembles that join them: native functions, Triton's model.py, ONNX, streams and sequences."""

from pathlib import Path

from .. import models
from ..sequences import sources as sequences

_PLUS = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=8)
def plus(x: Array[FP32, 4]) -> Array[FP32, 4]:
    return x + {amount}
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

_COUNT = """
from collections.abc import Iterator

import numpy as np
from naiad_custom import FP32, INT32, Array, model

@model(outputs="y")
def count(times: Array[INT32, 1], x: Array[FP32, 4]) -> Iterator[Array[FP32, 4]]:
    for number in range(int(times[0])):
        yield x + np.float32(number)
"""

_SLOWLY = """
import time
from naiad_custom import FP32, Array, model

@model(max_batch_size=8)
def slowly(x: Array[FP32, 4]) -> Array[FP32, 4]:
    time.sleep(0.001)
    return x
"""

_TELLS = """
import json

import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        heard = {
            "id": request.request_id(),
            "sequence": [request.correlation_id(), request.flags()],
            "timeout": request.timeout(),
            "parameters": json.loads(request.parameters()),
        }
        said = np.array([json.dumps(heard).encode()], object)
        return pb_utils.InferenceResponse([*request.inputs(), pb_utils.Tensor("said", said)])
"""
_TELLS_CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "said" data_type: TYPE_STRING dims: [ 1 ] } ]
"""

_MAYBE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request.inputs()[0].as_numpy()) for request in requests]

    def _answer(self, x):
        positive = [pb_utils.Tensor("positive", x)] if x[0] > 0 else []
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x), *positive])
"""
_MAYBE_CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "positive" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
_ADDS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(*(tensor.as_numpy() for tensor in request.inputs())) for request in requests]

    def _answer(self, a, b=100):
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", a + b)])
"""
_ADDS_CONFIG = """
backend: "python"
input [ { name: "a" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "b" data_type: TYPE_FP32 dims: [ 4 ] optional: true } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
_TOGETHER = 'backend: "python" dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 30000000 }'


def step(model: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """A step; the keys are the model's names."""
    maps = [
        f'{kind} {{ key: "{key}" value: "{value}" }}'
        for kind, pairs in (("input_map", inputs), ("output_map", outputs))
        for key, value in pairs.items()
    ]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }}'


def ensemble(inputs: str, outputs: str, *steps: str, batch: int = 8) -> str:
    """The configuration of an ensemble; tensors are `NAME TYPE DIMS`, separated by commas."""
    return "\n".join(
        [
            f'platform: "ensemble" max_batch_size: {batch}',
            *(_tensor("input", given) for given in inputs.split(",")),
            *(_tensor("output", made) for made in outputs.split(",")),
            f"ensemble_scheduling {{ {' '.join(steps)} }}",
        ]
    )


def write(repository: Path, name: str, config: str) -> Path:
    """The folder of an ensemble."""
    (repository / name / "1").mkdir(parents=True, exist_ok=True)
    (repository / name / "config.pbtxt").write_text(config)
    return repository / name


def write_all(repository: Path, told: Path) -> None:
    """Every model and every ensemble of these tests; models of sequences tell in the folder `told`."""
    sequences.write_all(repository, told)
    models.write(repository, "echo", models.ECHO)
    models.write(repository, "plus_one", _PLUS.format(amount=1))
    models.write(repository, "times_two", _TRITON_TIMES, _TRITON_CONFIG)
    models.write(repository, "count", _COUNT)
    models.write(repository, "slowly", _SLOWLY)
    scores = 'output [ { name: "scores" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" } ]'
    models.write_onnx(repository, "scores", models.onnx_scores(), f"max_batch_size: 8\n{scores}")
    (repository / "scores" / "labels.txt").write_text("ant\nbee\ncat\ndog\n")
    once = [
        step("plus_one", {"x": "X"}, {"output": "more"}),
        step("times_two", {"x": "more"}, {"y": "twice"}),
        step("scores", {"x": "twice"}, {"scores": "SCORES"}),
        step("slowly", {"x": "twice"}, {"output": "TWICE"}),
    ]
    write(repository, "scoring", ensemble("X FP32 4", "SCORES FP32 4,TWICE FP32 4", *once))
    streamed = [
        step("count", {"times": "TIMES", "x": "X"}, {"y": "counted"}),
        step("times_two", {"x": "counted"}, {"y": "Y"}),
    ]
    write(repository, "counting", ensemble("TIMES INT32 1,X FP32 4", "Y FP32 4", *streamed, batch=0))
    models.write(repository, "tells", _TELLS, _TELLS_CONFIG)
    told = [
        step("tells", {"x": "X"}, {"x": "between", "said": "FIRST"}),
        step("tells", {"x": "between"}, {"said": "SECOND"}),
    ]
    write(repository, "telling", ensemble("X FP32 4", "FIRST STRING 1,SECOND STRING 1", *told, batch=0))
    models.write(repository, "maybe", _MAYBE, _MAYBE_CONFIG)
    models.write(repository, "adds", _ADDS, _ADDS_CONFIG)
    maybe = step("maybe", {"x": "X"}, {"y": "y", "positive": "positive"})
    adding = step("adds", {"a": "y", "b": "positive"}, {"y": "Y"})
    write(repository, "adding", ensemble("X FP32 4", "Y FP32 4", maybe, adding, batch=0))
    needing = step("adds", {"a": "positive", "b": "y"}, {"y": "Y"})
    write(repository, "needing", ensemble("X FP32 4", "Y FP32 4", maybe, needing, batch=0))
    models.write(repository, "together", _PLUS.format(amount=3), _TOGETHER)
    write(repository, "joined", ensemble("X FP32 4", "Y FP32 4", step("together", {"x": "X"}, {"output": "Y"})))
    for kind in ("triton_direct", "native_oldest", "onnx_direct"):
        summing = [step(kind, {"x": "X"}, {"y": "Y"})]
        write(repository, f"summing_{kind}", ensemble("X FP32 1", "Y FP32 1", *summing, batch=4))


def _tensor(side: str, written: str) -> str:
    name, datatype, dims = written.split()
    return f'{side} [ {{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] }} ]'
