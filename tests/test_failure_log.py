"""What `naiad serve` logs of requests that fail, over HTTP and gRPC."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tritonclient.grpc as grpc
from tritonclient.utils import InferenceServerException

from .written import ECHO, infer, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

ANSWERS_WITH_ERROR = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        error = pb_utils.TritonError("the sensor is broken", pb_utils.TritonError.INTERNAL)
        return [pb_utils.InferenceResponse([], error) for _ in requests]
"""
CONFIG = """
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }
"""
RAISES = ECHO.replace("return x", "raise ValueError('no luck')").replace("echo", "raises")


def over_grpc(port: str, model: str) -> str:
    tensor = grpc.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.ones(1, np.float32))
    with grpc.InferenceServerClient(f"127.0.0.1:{port}") as client, pytest.raises(InferenceServerException) as refused:
        client.infer(model, [tensor], request_id="g-1")
    return str(refused.value.status())


def test_every_fault_is_in_the_log_once_with_its_traceback_whatever_its_kind_and_protocol(
    serve: "Serve", tmp_path: Path
) -> None:
    write_model(tmp_path, "answers", ANSWERS_WITH_ERROR, CONFIG)
    write_model(tmp_path, "raises", RAISES)
    server = serve(tmp_path, "--access-log=text")
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    url = server.url

    statuses = [infer(url, "answers", 1, id="h-1")[0], infer(url, "raises", 1, id="h-2")[0]]
    codes = [over_grpc(port, "answers"), over_grpc(port, "raises")]
    server.signal(signal.SIGTERM)
    server.exit_status()

    assert (statuses, codes) == ([500, 500], ["StatusCode.INTERNAL"] * 2)
    log = "\n".join(server.lines)
    assert "HTTP 500: [request id: h-1] the sensor is broken" in log
    assert "gRPC INTERNAL: [request id: g-1] the sensor is broken" in log
    assert log.count("the sensor is broken") == 2
    assert log.count("Traceback (most recent call last)") == log.count("ValueError: no luck") == 2
    assert [log.count(f"failed a batch of 1 request ({name})") for name in ("h-2", "g-1")] == [1, 1]


def test_a_model_that_does_not_serve_is_one_warning_however_often_it_is_requested(
    serve: "Serve", tmp_path: Path
) -> None:
    write_model(tmp_path, "broken", "import no_such_module")
    server = serve(tmp_path, "--exit-on-error=false")
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    url = server.url

    statuses = {infer(url, "broken", 1)[0] for _ in range(20)}
    code = over_grpc(port, "broken")
    server.signal(signal.SIGTERM)
    server.exit_status()

    assert (statuses, code) == ({503}, "StatusCode.UNAVAILABLE")
    warnings = [line for line in server.lines if "HTTP 503: " in line or "gRPC UNAVAILABLE: " in line]
    assert ["HTTP 503" in line for line in warnings] == [True, False]
    assert "gRPC UNAVAILABLE: " in warnings[1]
    assert "'broken'" in warnings[1]


def test_a_verbose_log_has_a_line_for_every_refusal(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve(tmp_path, "--log-verbose=1", frontends=["http"])
    url = server.url

    assert infer(url, "echo", 1, 2, id="r-1")[0] == 400

    assert "[request id: r-1]" in server.wait_for("HTTP 400: ").string
