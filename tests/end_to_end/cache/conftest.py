"""A server with a response cache, over a model that gives the number of its executions."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from .. import models
from ..conftest import ending_well
from ..running import Running, until

TRITON_COUNTING = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.times = 0

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        self.times += 1
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        times = np.array([self.times], np.int32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x), pb_utils.Tensor("times", times)])
"""

TRITON_CALLING = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request.inputs()) for request in requests]

    def _answer(self, inputs):
        request = pb_utils.InferenceRequest(model_name="numbers", inputs=inputs, requested_output_names=["y", "times"])
        return pb_utils.InferenceResponse(request.exec().output_tensors())
"""

CONFIG = """
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "times" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
_METRICS = re.compile(r'metrics frontend listens at (http://[^\s"]+)')


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[Running]:
    """A server with a local cache, of `numbers`, which is cached, and `calling`, which calls it and is not."""
    repository = tmp_path / "models"
    models.write(repository, "numbers", TRITON_COUNTING, CONFIG + "response_cache { enable: true }")
    models.write(repository, "calling", TRITON_CALLING, CONFIG)
    words = ("--cache-config", "local,size=1000000", "--allow-client-shm=true")
    with ending_well(Running(repository, tmp_path / "log", *words)) as running:
        yield running


def metric(running: Running, name: str) -> float:
    """The sum of a metric's samples."""
    from urllib.request import urlopen

    match = until(lambda: _METRICS.search(running.log))
    with urlopen(match.group(1)) as answer:
        lines = answer.read().decode().splitlines()
    return float(np.sum([float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}[ {{]", line)]))
