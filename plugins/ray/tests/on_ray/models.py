"""The models of the tests on Ray, and the files of two applications: groups behind a front desk, and one group."""

from collections.abc import Iterator
from pathlib import Path

ECHO = """
import time
from naiad_custom import FP32, Array, model

@model(max_batch_size=8, outputs="y")
def echo(x: Array[FP32, 1]) -> Array[FP32, 1]:
    time.sleep(float(x.max()))
    return x
"""

FRAIL = """
import os
from pathlib import Path
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        tensor = lambda request: pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())
        return [pb_utils.InferenceResponse([tensor(request)]) for request in requests]

    def is_ready(self):
        return Path(os.environ["NAIAD_TEST_SICK"]).read_text() != str(os.getpid())
"""
"""Not ready in the process whose number is in a file."""

OF_FRAIL = """
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
"""

TILL = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=16, outputs=("total", "bill_after"))
def add(price: Array[FP32, 1], bill: Array[FP32, 1]) -> tuple[Array[FP32, 1], Array[FP32, 1]]:
    total = bill + price
    return total, total
"""

OF_TILL = """
sequence_batching {
  oldest { max_candidate_sequences: 100 }
  max_sequence_idle_microseconds: 60000000
  state [ { input_name: "bill" output_name: "bill_after" data_type: TYPE_FP32 dims: [ 1 ] } ]
}
"""

WORDS = """
from collections.abc import AsyncIterator
import numpy as np
from naiad_custom import BYTES, Array, model

@model(outputs="word")
async def words(text: Array[BYTES, 1]) -> AsyncIterator[Array[BYTES, 1]]:
    for word in text[0].split():
        yield np.array([word], dtype=object)
"""

TWICE = """
platform: "ensemble"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "z" data_type: TYPE_FP32 dims: [ 1 ] }
ensemble_scheduling {
  step { model_name: "echo" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "m" } }
  step { model_name: "echo" model_version: -1 input_map { key: "x" value: "m" } output_map { key: "y" value: "z" } }
}
"""

MODELS = {
    "echo": (ECHO, ""),
    "frail": (FRAIL, OF_FRAIL),
    "till": (TILL, OF_TILL),
    "words": (WORDS, ""),
    "twice": ("", TWICE),
}

GROUPS = """
repository: models
http: {{host: 127.0.0.1, port: {http}}}
grpc: {{port: {grpc}}}
health_seconds: 1
drain_seconds: 10
front_desk: {{num_cpus: 0.1, labels: {{row: back}}, surge_percent: 100}}
groups:
  - {{name: state, models: [till, echo], replicas: 2, num_cpus: 0.6}}
  - {{name: rest, num_cpus: 0.1, num_gpus: 0.5}}
"""

ONE_GROUP = """
repository: {repository}
http: {{host: 127.0.0.1, port: {http}}}
grpc: {{port: {grpc}}}
health_seconds: 1
drain_seconds: 10
groups:
  - name: only
    models: [echo, frail, words]
    num_cpus: 0.33
"""


def files_of(*names: str) -> Iterator[tuple[str, str]]:
    """The files of the models of these names: their paths in a repository, and their texts."""
    for name in names:
        source, config = MODELS[name]
        if source:
            yield f"{name}/1/model.py", source
        if config:
            yield f"{name}/config.pbtxt", config


def write_models(repository: Path, *names: str) -> None:
    """Write the models of these names into a folder."""
    for path, text in files_of(*names):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    for name in names:
        (repository / name / "1").mkdir(exist_ok=True)  # an ensemble has nothing else in its version
