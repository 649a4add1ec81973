"""A server whose process may not have more memory: what does not fit fails, and everything else is served."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from . import models
from .conftest import Start
from .running import Running

MEGABYTE = 2**20

HUNGRY = """
import numpy as np
from naiad_custom import FP32, Array, model

@model
class Hungry:
    def load(self, context):
        {load}

    def execute(self, x: Array[FP32, -1]) -> Array[FP32, -1]:
        {execute}
        return x
"""

TRITON = """
import numpy as np

class TritonPythonModel:
    def initialize(self, args):
        self.weights = np.ones(2**28)

    def execute(self, requests):
        return []
"""


@contextmanager
def memory_limited_to(server: Running, more: int) -> Iterator[None]:
    """The process gets so many bytes of address space more than it has, and not one beyond that."""
    before = resource.prlimit(server.pid, resource.RLIMIT_AS)
    pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[0])
    resource.prlimit(server.pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_AS, before)


def write_python(repository: Path) -> None:
    models.write(repository, "hungry", HUNGRY.format(load="self.weights = np.ones(2**28)", execute="pass"))


def write_triton(repository: Path) -> None:
    models.write(repository, "hungry", TRITON, models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1"))


def onnx_model() -> Any:
    """y = x + 0, where the zero is the sum of 2 GB of zeros."""
    shape = numpy_helper.from_array(np.array([2**29], np.int64), "shape")
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    kind = (TensorProto.FLOAT, ["n"])
    return models.onnx_model(nodes, {"x": kind}, {"y": kind}, [shape])


@pytest.mark.parametrize("write", [write_python, write_triton])
def test_a_model_that_does_not_fit_is_unavailable_and_can_be_loaded_when_there_is_room(
    server: Running, write: Callable[[Path], None]
) -> None:
    write(server.repository)

    with memory_limited_to(server, 300 * MEGABYTE):
        failed = server.load("hungry")
        (entry,) = server.entries("hungry")
        others = server.infer("echo", 1)
    server.unload("hungry")

    assert (failed.status, entry["state"], others.status) == (400, "UNAVAILABLE", 200)
    assert "Unable to allocate 2.00 GiB" in failed.error
    assert "Unable to allocate 2.00 GiB" in entry["reason"]


def test_an_execution_that_does_not_fit_fails_its_request_alone(server: Running) -> None:
    models.write(server.repository, "greedy", HUNGRY.format(load="pass", execute="np.ones(2**28)"))
    models.write_onnx(server.repository, "greedy_onnx", onnx_model(), 'input { name: "x" dims: [-1] }')
    assert [server.load(name).status for name in ("greedy", "greedy_onnx")] == [200, 200]

    with memory_limited_to(server, 300 * MEGABYTE):
        failed = [server.infer(name, 1) for name in ("greedy", "greedy_onnx") for _ in range(2)]
        others = server.infer("echo", 1)
        ready = server.ready()
    server.unload("greedy")
    server.unload("greedy_onnx")

    assert ([each.status for each in failed], others.status, ready) == ([500] * 4, 200, True)
    assert all("Unable to allocate 2.00 GiB" in each.error for each in failed[:2])
    assert all("allocat" in each.error for each in failed[2:])


def test_a_body_that_does_not_fit_is_refused_for_now(start: Start, repository: Path) -> None:
    running = start("--http-max-input-size=200000000")
    assert running.infer("echo", 1).status == 200
    # twice an arena of the C library: a thread may have reserved one before, and one that ends may free another
    body, raw = bytes(2**27), {"Inference-Header-Content-Length": "0"}

    with memory_limited_to(running, 20 * MEGABYTE):
        refused = running.ask("POST", "/v2/models/echo/infer", body, raw)
        others = running.infer("echo", 1)
    served = running.ask("POST", "/v2/models/echo/infer", body, raw)

    assert (refused.status, refused.headers.get("retry-after")) == (503, "1")
    assert f"{len(body)} bytes" in refused.error
    assert (others.status, served.status, len(served.body) > len(body)) == (200, 200, True)
    running.stop()
