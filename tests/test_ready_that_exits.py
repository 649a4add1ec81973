"""A model whose `ready()` wants to end the process, in a real server whose event loop a model's thread runs."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tritonclient.grpc as triton

from .written import ECHO, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

LEAVES = """
from naiad_custom import FP32, Array, model

@model
class Leaves:
    def ready(self):
        raise {error}("the model left")

    def execute(self, x: Array[FP32, 1]) -> Array[FP32, 1]:
        return x
"""

ENOUGH_TO_LEAD = 300


@pytest.mark.parametrize("error", ["SystemExit", "KeyboardInterrupt"])
def test_a_ready_that_exits_neither_ends_nor_freezes_the_server(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, error: str
) -> None:
    for name, source in (("echo", ECHO), ("leaves", LEAVES.format(error=error))):
        write_model(tmp_path, name, source)
    server = serve(tmp_path)
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    tensor = triton.InferInput("x", [1], "FP32").set_data_from_numpy(np.ones(1, np.float32))

    with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        for _ in range(ENOUGH_TO_LEAD):
            client.infer("echo", [tensor])
        ready = [client.is_server_ready(client_timeout=30), client.is_model_ready("leaves", client_timeout=30)]
        client.infer("echo", [tensor], client_timeout=30)
    server.signal(signal.SIGTERM)

    assert server.exit_status() == 0
    assert ready == [False, False]
