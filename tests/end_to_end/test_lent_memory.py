"""Clients with large tensors in shared memory, and Triton-style models that do with them what such models do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient.utils import shared_memory as shm

from .conftest import Start
from .running import Running
from .sharing import LARGE, key_of, placed, wanted

SIZE = 4 * LARGE
CONFIG = """
backend: "python"
input [ { name: "FRAME" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "RESULT" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
MOTION = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.before = None

    def execute(self, requests):
        responses = []
        for request in requests:
            frame = pb_utils.get_input_tensor_by_name(request, "FRAME").as_numpy()
            before, self.before = self.before, frame
            result = frame - before if before is not None else np.zeros_like(frame)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("RESULT", result)]))
        return responses
"""
IN_PLACE = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            frame = pb_utils.get_input_tensor_by_name(request, "FRAME").as_numpy()
            frame *= 2
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("RESULT", frame)]))
        return responses
"""


def write(repository: Path, name: str, code: str) -> None:
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder.parent / "config.pbtxt").write_text(CONFIG)
    (folder / "model.py").write_text(code)


def serve(start: Start, repository: Path, name: str, code: str, region: Any) -> Running:
    """A server of that one model, at which the region is registered as 'r'."""
    write(repository, name, code)
    running = start("--allow-client-shm=true", "--shared-memory-lending=true")
    with running.client() as client:
        client.register_system_shared_memory("r", key_of(region), 2 * SIZE)
    return running


def ask(running: Running, model: str, region: Any) -> np.ndarray:
    with running.client() as client:
        client.infer(model, [placed("FRAME", (LARGE,), "FP32", "r", SIZE)], outputs=[wanted("RESULT", "r", SIZE, SIZE)])
    found: np.ndarray = shm.get_contents_as_numpy(region, np.float32, (LARGE,), SIZE).copy()
    return found


def frame(region: Any, value: float) -> None:
    shm.set_shared_memory_region(region, [np.full(2 * LARGE, value, np.float32)])


def test_a_model_that_compares_a_frame_with_the_one_before_has_both(
    start: Start, repository: Path, make_region: Callable[[int], Any]
) -> None:
    region = make_region(2 * SIZE)
    running = serve(start, repository, "motion", MOTION, region)

    seen = []
    for value in (1.0, 3.0, 7.0, 15.0):
        frame(region, value)
        seen.append(set(ask(running, "motion", region)))

    assert seen == [{0.0}, {2.0}, {4.0}, {8.0}]


def test_a_model_that_computes_in_place_leaves_the_frame_as_it_is(
    start: Start, repository: Path, make_region: Callable[[int], Any]
) -> None:
    region = make_region(2 * SIZE)
    running = serve(start, repository, "twice", IN_PLACE, region)
    frame(region, 3.0)

    results = [set(ask(running, "twice", region)) for _ in range(3)]

    assert results == [{6.0}] * 3
    assert set(shm.get_contents_as_numpy(region, np.float32, (LARGE,), 0)) == {3.0}
