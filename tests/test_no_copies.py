"""A request that is alone goes to ONNX Runtime and PyTorch and back without a copy: 8 MB leave no trace in Python.

So does an input that a `TritonPythonModel` answers with, from one socket of HTTP to the other. Over gRPC it is copied
once, out of its frames.

OpenVINO and TensorFlow write to memory that numpy counts; the tests of their plugins compare addresses. Modules of
PyTorch in Python get copies, since they may write to their inputs.
"""

import asyncio
import re
import socket
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import pytest
import uvloop

import naiad_custom
import naiad_grpc
import naiad_http
from naiad import Server
from naiad_tensors.tensors import Tensor
from naiad_testing.workbench import Loaded, Workbench

_Answer = TypeVar("_Answer")

ROWS = 1 << 11
CONFIG = """max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 1024 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 1024 ] } ]
"""


def onnx_model(folder: Path) -> Loaded:
    onnx = pytest.importorskip("onnx")
    from naiad_onnx.backend import OnnxBackend

    bench = Workbench(folder, OnnxBackend())
    _write_onnx(onnx, bench.path("model.onnx"))
    return bench.load(CONFIG)


def torch_model(folder: Path) -> Loaded:
    torch = pytest.importorskip("torch")
    from naiad_torch.backend import TorchBackend

    class Negative(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return -x

    bench = Workbench(folder, TorchBackend())
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
        torch.jit.trace(Negative(), torch.ones(2, 1024)).save(bench.path("model.pt"))
    return bench.load(f'platform: "pytorch_libtorch" {CONFIG}')


@pytest.mark.parametrize("load", [onnx_model, torch_model])
def test_a_request_that_is_alone_is_not_copied(load: Callable[[Path], Loaded], tmp_path: Path) -> None:
    served = load(tmp_path / "m")
    array = np.ones((ROWS, 1024), np.float32)
    array.flags.writeable = False  # as a view on a received buffer is
    sent: Any = {"x": Tensor.of("x", array)}
    served.execute(sent)

    tracemalloc.start()
    try:
        answer = served.execute(sent)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert np.asarray(answer["y"])[-1, -1] == -1
    assert peak < array.nbytes / 16


def test_an_input_that_a_model_answers_with_is_not_copied(identity: Path) -> None:
    peak, answer = uvloop.run(_ask_for_peak(identity, naiad_http, "http", _peak_of_requests))

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(BODY[-64:])
    assert peak < 1.5 * len(BODY)  # the body as it was received


def test_an_input_that_a_model_answers_with_is_copied_once_over_grpc(identity: Path) -> None:
    peak, answer = uvloop.run(_ask_for_peak(identity, naiad_grpc, "grpc", _peak_of_calls))

    assert answer == "8388608 bytes, as they were sent"
    assert peak < 1.5 * len(BODY)  # the message, put together from its frames


@pytest.fixture
def identity(tmp_path: Path) -> Path:
    """A repository with a model that answers with its input."""
    model = tmp_path / "identity"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(f'backend: "python" {CONFIG}')
    (model / "1" / "model.py").write_text(IDENTITY)
    return tmp_path


IDENTITY = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        arrays = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("y", array)]) for array in arrays]
"""
_LENGTH = re.compile(rb"(?i)\ncontent-length: (\d+)")
BODY = np.arange(ROWS << 10, dtype=np.float32).tobytes()


async def _ask_for_peak(
    repository: Path, frontend: ModuleType, name: str, ask: Callable[[int], tuple[int, _Answer]]
) -> tuple[int, _Answer]:
    options = {f"{name}-port": 0, f"{name}-address": "127.0.0.1"}
    async with Server(model_repository=[repository], plugins=[naiad_custom, frontend], options=options) as server:
        served = server.plugins.frontends()[name]
        port = served.port if name == "http" else int(served.target.rpartition(":")[2])
        return await asyncio.to_thread(ask, port)


CLIENT = """
import sys
import numpy as np
import tritonclient.grpc as client

array = np.arange(2048 << 10, dtype=np.float32).reshape(2048, 1024)
sent = client.InferInput("x", array.shape, "FP32")
sent.set_data_from_numpy(array)
with client.InferenceServerClient(f"127.0.0.1:{sys.argv[1]}") as connection:
    for _ in range(2):
        answer = connection.infer("identity", [sent]).as_numpy("y")
print(answer.nbytes, "bytes,", "as they were sent" if (answer == array).all() else "others", end="")
"""


def _peak_of_calls(port: int) -> tuple[int, str]:
    """The memory that two calls take of a client in another process, and what it says of its answer."""
    tracemalloc.start()
    try:
        ran = subprocess.run([sys.executable, "-c", CLIENT, str(port)], capture_output=True, text=True, timeout=60)
        return tracemalloc.get_traced_memory()[1], ran.stdout + ran.stderr
    finally:
        tracemalloc.stop()


def _peak_of_requests(port: int) -> tuple[int, bytes]:
    """The memory that the second of two requests takes, and its answer."""
    description = (
        '{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,1024],"parameters":{"binary_data_size":%d}}],%s}'
    )
    front = (description % (ROWS, len(BODY), '"parameters":{"binary_data_output":true}')).encode()
    head = (
        "POST /v2/models/identity/infer HTTP/1.1\r\nHost: localhost\r\n"
        f"Inference-Header-Content-Length: {len(front)}\r\nContent-Length: {len(front) + len(BODY)}\r\n\r\n"
    )
    answer = memoryview(bytearray(len(BODY) + 4096))
    peak = received = 0
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for _ in range(2):
            tracemalloc.start()
            connection.sendall(head.encode() + front)
            connection.sendall(BODY)
            received, length = 0, 1
            while received < length:
                received += connection.recv_into(answer[received:])
                front_end = bytes(answer[:4096]).index(b"\r\n\r\n") + 4
                length = front_end + int(_LENGTH.findall(answer[:4096])[0])
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    return peak, bytes(answer[:received])


def _write_onnx(onnx: Any, path: Path) -> None:
    """y = -x."""
    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", 1024]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "graph", tensors[:1], tensors[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    path.write_bytes(model.SerializeToString())
