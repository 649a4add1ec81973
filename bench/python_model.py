"""What a TritonPythonModel costs a request beside its arithmetic: add/sub, two FP32[16] inputs, batches of 64."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from naiad.backend import Batch, ModelContext, Placement
from naiad.types import Request
from naiad_config import ModelInstanceGroup
from naiad_config.text import parse_text
from naiad_tensors.tensors import Tensor

from naiad_custom.backend import PythonBackend

_GOAL = 6.0
"""Microseconds a request: 2 for the request and its response, 1 for each of four tensors."""

_SIZE = 64

_MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            left = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            right = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
            outputs = [pb_utils.Tensor("OUTPUT0", left + right), pb_utils.Tensor("OUTPUT1", left - right)]
            responses.append(pb_utils.InferenceResponse(output_tensors=outputs))
        return responses
"""

_CONFIG = """
name: "add_sub" backend: "python" max_batch_size: 64
input [{ name: "INPUT0" data_type: TYPE_FP32 dims: 16 }, { name: "INPUT1" data_type: TYPE_FP32 dims: 16 }]
output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: 16 }, { name: "OUTPUT1" data_type: TYPE_FP32 dims: 16 }]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    arrays = [np.frombuffer(bytes(64), np.float32).reshape(1, 16) for _ in range(2 * _SIZE)]
    batch = Batch([_request(*arrays[2 * number : 2 * number + 2]) for number in range(_SIZE)], [1] * _SIZE)
    with TemporaryDirectory() as folder:
        instance = _instance(Path(folder))
        whole = min(_microseconds(lambda: instance.execute(batch)) for _ in range(rounds))
    alone = min(_microseconds(lambda: _arithmetic(arrays)) for _ in range(rounds))
    print(f"{whole:.2f} µs a request, {alone:.2f} of it numpy's; {whole - alone:.2f} are ours (goal: {_GOAL:g})")


def _instance(folder: Path):
    (folder / "1").mkdir()
    (folder / "1" / "model.py").write_text(_MODEL, encoding="utf-8")
    model = PythonBackend().load(ModelContext(parse_text(_CONFIG), 1, folder, folder / "1"))
    return model.instantiate(Placement("add_sub_0", "CPU", 0, ModelInstanceGroup()))


def _request(first: np.ndarray, right: np.ndarray) -> Request:
    inputs = {"INPUT0": Tensor("INPUT0", "FP32", (1, 16), first), "INPUT1": Tensor("INPUT1", "FP32", (1, 16), right)}
    return Request("add_sub", inputs)


def _arithmetic(arrays: list[np.ndarray]) -> None:
    for number in range(0, len(arrays), 2):
        arrays[number] + arrays[number + 1]
        arrays[number] - arrays[number + 1]


def _microseconds(run: Callable[[], object], times: int = 2_000) -> float:
    """Microseconds of this process's own time a request."""
    run()
    started = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - started) / (times * _SIZE) * 1e6


if __name__ == "__main__":
    main()
