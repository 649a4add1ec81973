"""A server whose event loop stands still ends by itself, and says where it stood."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tritonclient.grpc as triton

from naiad_cli.long_executions import locate_instance
from naiad_custom import FP32, Array, model

from .written import ECHO, WAITS_TO_ANSWER, Gate, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

HANGS = """
import threading

from naiad_custom import FP32, Array, model

@model
def hangs(x: Array[FP32, 1]) -> Array[FP32, 1]:
    threading.Event().wait()
    return x
"""

CONFIG = """
backend: "python"
parameters { key: "execute_on" value { string_value: "event_loop" } }
"""


def test_a_loop_that_stands_still_ends_the_process(serve: "Callable[..., ServerProcess]", tmp_path: Path) -> None:
    write_model(tmp_path, "hangs", HANGS, CONFIG)
    server = serve(tmp_path, "--watchdog-secs=1")
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    server.wait_for("metrics frontend listens")
    tensor = triton.InferInput("x", [1], "FP32").set_data_from_numpy(np.ones(1, np.float32))

    with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        assert client.is_server_ready()  # its start is over: until then the watchdog allows a minute
        with pytest.raises(triton.InferenceServerException):
            client.infer("hangs", [tensor])

    assert server.exit_status() == os.EX_SOFTWARE
    log = "\n".join(server.lines)
    assert re.search(r"the event loop has stood still for 1 s \(--watchdog-secs\), in wait \(", log)
    assert re.search(r'File ".*/hangs/1/model.py", line 8 in hangs', log)


def test_a_process_that_was_stopped_answers_what_was_in_flight_and_what_came_meanwhile(
    serve: "Callable[..., ServerProcess]", tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    write_model(tmp_path / "models", "waits", WAITS_TO_ANSWER.format(**gate.paths), 'backend: "python"')
    write_model(tmp_path / "models", "echo", ECHO, 'backend: "python"')
    server = serve(tmp_path / "models", "--watchdog-secs=1")
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    server.wait_for("metrics frontend listens")
    tensor = triton.InferInput("x", [1], "FP32").set_data_from_numpy(np.ones(1, np.float32))

    with ThreadPoolExecutor(2) as pool, triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        assert client.is_server_ready()
        in_flight = pool.submit(client.infer, "waits", [tensor])
        gate.wait_until_entered()
        server.signal(signal.SIGSTOP)
        meanwhile = pool.submit(client.infer, "echo", [tensor])
        time.sleep(3)  # three times what the watchdog allows
        unanswered = not meanwhile.done()
        server.signal(signal.SIGCONT)
        gate.let_through()
        results = [each.result(30) for each in (in_flight, meanwhile)]
        answers = [each.as_numpy(each.get_response().outputs[0].name).tolist() for each in results]

    assert (unanswered, answers) == (True, [[1.0], [1.0]])
    server.signal(signal.SIGTERM)
    assert server.exit_status() == 0


def test_an_instance_that_hangs_is_located_by_its_thread(naiad_serve: Callable[..., Any]) -> None:
    entered, may_end = threading.Event(), threading.Event()

    @model
    def stand(x: Array[FP32, 1]) -> Array[FP32, 1]:
        entered.set()
        may_end.wait(30)
        return x

    client = naiad_serve(stand)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.infer, x=[1])
        try:
            assert entered.wait(30)
            location = locate_instance("stand_0")
        finally:
            may_end.set()
        answer.result(30)

    assert f"called by stand ({__file__}:" in location
