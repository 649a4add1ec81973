"""Large inputs of isolated models over HTTP and gRPC: the model reads them where the server has received them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http

from naiad_process_workers.bodies import MOST_BYTES

from .written import write_model

if TYPE_CHECKING:
    from .conftest import ServerProcess

MODEL = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.kept = []

    def execute(self, requests):
        responses = []
        for request in requests:
            x, z = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in "XZ")
            if x[0] == 7:
                os._exit(7)
            self.kept = [*self.kept[-2:], (x, x.copy())]
            assert all(np.array_equal(*pair) for pair in self.kept), "an input changed while the model had it"
            where = np.array([memory(x) == memory(z) == "naiad-bodies"])
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + z), pb_utils.Tensor("W", where)]))
        return responses


def memory(array):
    "The name of the memory that an array is in."
    address = array.__array_interface__["data"][0]
    for line in open("/proc/self/maps"):
        first, last = (int(each, 16) for each in line.split()[0].split("-"))
        if first <= address < last:
            return line.split()[5].removeprefix("/memfd:") if len(line.split()) > 5 else ""
"""
CONFIG = """
backend: "python" instance_group { count: 2 kind: KIND_CPU }
input { name: "X" data_type: TYPE_FP32 dims: -1 } input { name: "Z" data_type: TYPE_FP32 dims: -1 }
output { name: "Y" data_type: TYPE_FP32 dims: -1 } output { name: "W" data_type: TYPE_BOOL dims: 1 }
parameters { key: "isolation" value { string_value: "ISOLATION" } }
"""
ECHO = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            outputs = {"SAME": x, "FIRST": x[: len(x) // 2], "LAST": x[len(x) // 2 :], "OTHER": x + 1}
            tensors = [pb_utils.Tensor(name, each) for name, each in outputs.items()]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
"""
ECHOES = """
backend: "python"
input { name: "X" data_type: TYPE_FP32 dims: -1 }
output { name: "SAME" data_type: TYPE_FP32 dims: -1 } output { name: "FIRST" data_type: TYPE_FP32 dims: -1 }
output { name: "LAST" data_type: TYPE_FP32 dims: -1 } output { name: "OTHER" data_type: TYPE_FP32 dims: -1 }
parameters { key: "isolation" value { string_value: "process" } }
"""
Answer = tuple[np.ndarray, bool]


@pytest.fixture(params=["process", "model"])
def server(request: pytest.FixtureRequest, serve: "Callable[..., ServerProcess]", tmp_path: Path) -> "ServerProcess":
    write_model(tmp_path / "models", "m", MODEL, CONFIG.replace("ISOLATION", request.param))
    return serve(tmp_path / "models")


def addresses(server: "ServerProcess") -> dict[str, str]:
    lines = [server.wait_for(r"(http|grpc) frontend listens at \S*?([\d.]+:\d+)") for _ in range(2)]
    return {each.group(1): each.group(2) for each in lines}


def infer(client: Any, library: Any, x: np.ndarray, z: np.ndarray, request_id: str = "") -> Answer:
    inputs = []
    for name, array in (("X", x), ("Z", z)):
        tensor = library.InferInput(name, list(array.shape), "FP32")
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    answer = client.infer("m", inputs, request_id=request_id)
    return answer.as_numpy("Y"), bool(answer.as_numpy("W")[0])


def test_inputs_over_http_are_read_where_they_were_received(server: "ServerProcess") -> None:
    rng = np.random.default_rng(1)
    with http.InferenceServerClient(addresses(server)["http"]) as client:
        for size in (30_000, 150_000, 1_000_000) * 6:
            x, z = rng.random((2, size), np.float32)
            total, where = infer(client, http, x, z)
            assert np.array_equal(total, x + z)
            assert where
        for _ in range(MOST_BYTES // (8 << 20) + 10):  # more than there is room for, if none were free again
            assert infer(client, http, x, z)[1]


def test_bodies_of_a_process_that_has_ended_are_free(server: "ServerProcess") -> None:
    """Three of them and two more are more than there is room for, and the model keeps what it has answered."""
    size = 7_500_000  # two of these inputs are 60 MB, as much as a request may have
    assert 3 * 8 * size < MOST_BYTES < 5 * 8 * size
    ones, few = np.ones(size, np.float32), np.ones(1, np.float32)
    with http.InferenceServerClient(addresses(server)["http"]) as client:
        for _ in range(3):
            with pytest.raises(http.InferenceServerException, match=r"exit code 7|not ready|no instance"):
                infer(client, http, ones * 7, ones)
            while True:
                try:
                    infer(client, http, few, few)
                    break
                except http.InferenceServerException:
                    continue

        assert [infer(client, http, ones, ones)[1] for _ in range(2)] == [True, True]


def test_inputs_over_grpc_are_copied_once(server: "ServerProcess") -> None:
    """An input that is not aligned in its message is copied to where the model reads it; the id moves the inputs."""
    rng = np.random.default_rng(2)
    wheres = []
    with grpc.InferenceServerClient(addresses(server)["grpc"]) as client:
        for size in (30_000, 1_000_000):
            for length in range(4):
                x, z = rng.random((2, size), np.float32)
                total, where = infer(client, grpc, x, z, "i" * length)
                assert np.array_equal(total, x + z)
                wheres.append(where)

    assert sum(wheres) >= 4


def test_outputs_that_are_inputs_are_sent_from_where_they_were_received(
    serve: "Callable[..., ServerProcess]", tmp_path: Path
) -> None:
    write_model(tmp_path / "models", "m", ECHO, ECHOES)
    server = serve(tmp_path / "models")
    rng = np.random.default_rng(3)
    with http.InferenceServerClient(addresses(server)["http"]) as client:
        for _ in range(MOST_BYTES // (8 << 20) + 10):  # more than there is room for, if none were free again
            x = rng.random(2_000_000, np.float32)
            tensor = http.InferInput("X", [len(x)], "FP32")
            tensor.set_data_from_numpy(x)

            answer = client.infer("m", [tensor], outputs=[http.InferRequestedOutput("SAME")])

            assert np.array_equal(answer.as_numpy("SAME"), x)
        answer = client.infer("m", [tensor])
        assert np.array_equal(answer.as_numpy("SAME"), x)
        assert np.array_equal(np.concatenate([answer.as_numpy("FIRST"), answer.as_numpy("LAST")]), x)
        assert np.array_equal(answer.as_numpy("OTHER"), x + 1)


COUNTING = """
import threading
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(name="counted", description="d", kind=pb_utils.MetricFamily.COUNTER)
        metric = self.family.Metric(labels={"instance": args["model_instance_name"]})
        threading.Thread(target=count, args=(metric,), daemon=True).start()

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]) for x in inputs]


def count(metric):
    while True:
        metric.increment(1)
"""
COUNTS = """
backend: "python" instance_group { count: 2 kind: KIND_CPU }
input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }
parameters { key: "isolation" value { string_value: "ISOLATION" } }
"""


@pytest.mark.parametrize("isolation", ["process", "model"])
def test_an_output_that_is_an_input_is_there_until_the_server_has_read_it(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, isolation: str
) -> None:
    """What the model counts meanwhile carries the news that its input is free, and overtakes the answer."""
    write_model(tmp_path / "models", "m", COUNTING, COUNTS.replace("ISOLATION", isolation))
    server = serve(tmp_path / "models", frontends=["http"])
    rng = np.random.default_rng(4)
    with http.InferenceServerClient(server.url.removeprefix("http://")) as client:
        for _ in range(100):
            x = rng.random(30_000, np.float32)
            tensor = http.InferInput("X", [len(x)], "FP32")
            tensor.set_data_from_numpy(x)

            assert np.array_equal(client.infer("m", [tensor]).as_numpy("Y"), x)


@pytest.mark.parametrize("name", ["http", "grpc"])
def test_the_memory_of_large_tensors_is_free_without_a_further_request(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, name: str
) -> None:
    write_model(tmp_path / "models", "m", ECHO, ECHOES)
    server = serve(tmp_path / "models", "--http-max-input-size=200000000", "--grpc-max-message-size=200000000")
    library, x = {"http": http, "grpc": grpc}[name], np.ones(20_000_000, np.float32)
    with library.InferenceServerClient(addresses(server)[name]) as client:
        tensor = library.InferInput("X", [len(x)], "FP32")
        tensor.set_data_from_numpy(x)
        answer = client.infer("m", [tensor], outputs=[library.InferRequestedOutput("OTHER")])
        assert answer.as_numpy("OTHER")[-1] == 2

        until = time.monotonic() + 60
        while max(mapped := shared_bytes_of(server)) > x.nbytes:
            assert time.monotonic() < until, mapped
            time.sleep(0.05)
    assert len(mapped) == 2


def shared_bytes_of(server: "ServerProcess") -> list[int]:
    """The bytes of memory that a server and its models' processes share, in each of them."""
    sizes = []
    for process in (Path(f"/proc/{server._process.pid}"), *server.children()):
        lines = [line.split() for line in (process / "maps").read_text().splitlines() if "memfd:naiad" in line]
        ranges = [[int(bound, 16) for bound in line[0].split("-")] for line in lines]
        sizes.append(sum(last - first for first, last in ranges))
    return sizes
