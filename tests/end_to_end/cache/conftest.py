"""Servers with a response cache, over models that tell how often they were executed."""

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from .. import models
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
input { name: "x" data_type: TYPE_%s dims: [ %s ] }
output [ { name: "y" data_type: TYPE_%s dims: [ %s ] }, { name: "times" data_type: TYPE_INT32 dims: [ 1 ] } ]
%s
"""
CACHED = "response_cache { enable: true }"
_METRICS = re.compile(r'metrics frontend listens at (http://[^\s"]+)')


def write_counting(repository: Path, name: str, datatype: str = "FP32", dims: str = "-1", more: str = CACHED) -> None:
    """A model that gives y = x, and in `times` how often it was executed."""
    models.write(repository, name, TRITON_COUNTING, CONFIG % (datatype, dims, datatype, dims, more))


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """A repository with `numbers` and `texts`, which are cached, `pictures`, FP32[-1,-1], and `plain`, which is not.

    `calling` calls `numbers`, and is not cached either.
    """
    repository = tmp_path / "models"
    write_counting(repository, "numbers")
    write_counting(repository, "texts", "STRING")
    write_counting(repository, "pictures", dims="-1, -1")
    write_counting(repository, "plain", more="")
    models.write(repository, "calling", TRITON_CALLING, CONFIG % ("FP32", "-1", "FP32", "-1", ""))
    models.write(repository, "echo", models.ECHO)
    return repository


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start servers of that repository with these words; each must end well."""
    started: list[Running] = []

    def run(*words: str, **environment: str) -> Running:
        log = tmp_path / f"log-{len(started)}"
        started.append(Running(tmp_path / "models", log, *words, environment=environment))
        return started[-1]

    yield run
    for running in started:
        running.kill()


@pytest.fixture
def cached(counting: Path, serve: Callable[..., Running]) -> Iterator[Running]:
    """A server with a local cache."""
    running = serve("--cache-config", "local,size=1000000", "--allow-client-shm=true")
    assert running.port
    yield running
    running.stop()


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    """Where a Redis server listens."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server here; on Debian and Ubuntu: apt-get install redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([*words, "--requirepass", "sesame"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        until(lambda: _listens(port))
        yield port
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def metric(running: Running, name: str) -> float:
    """The sum of a metric's samples."""
    from urllib.request import urlopen

    found = until(lambda: _METRICS.search(running.log))
    with urlopen(found.group(1)) as answer:
        lines = answer.read().decode().splitlines()
    return float(np.sum([float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}[ {{]", line)]))
