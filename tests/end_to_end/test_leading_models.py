"""Models that answer quickly, whose threads run the event loop: what they may do, and what they cannot hold up."""

from pathlib import Path

from . import models
from .conftest import Start
from .gates import Gate
from .running import Running, until

QUICK = """
import sys
import urllib.request

from naiad_custom import FP32, Array, model

LEADS, WAITS, ASKS = -1.0, -2.0, -3.0


def leads():
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_execute_some":
        frame = frame.f_back
    return frame is not None


@model
def quick(x: Array[FP32, -1]) -> Array[FP32, -1]:
    if x[0] == LEADS:
        return x * 0 + leads()
    if x[0] == WAITS:
        wait()
    if x[0] == ASKS:
        with urllib.request.urlopen(f"http://127.0.0.1:{int(x[1])}/v2/health/live") as answer:
            return x * 0 + answer.status
    return x
"""
LEADS, WAITS, ASKS = -1.0, -2.0, -3.0


def leading(start: Start, repository: Path, gate: Gate, *options: str) -> Running:
    """A server whose event loop runs on the thread of model 'quick'."""
    models.write(repository, "quick", QUICK + gate.function("wait"))
    running = start(*options)
    until(lambda: number(running, LEADS) == 1.0)
    return running


def number(running: Running, *values: float) -> float:
    answer = running.infer("quick", *values)
    assert answer.status == 200, answer.body
    value: float = answer.document["outputs"][0]["data"][0]
    return value


def test_one_that_asks_its_own_server_is_answered(start: Start, repository: Path, gate: Gate) -> None:
    running = leading(start, repository, gate)

    assert number(running, ASKS, running.port) == 200
    assert number(running, 5.0) == 5.0


def test_one_that_hangs_holds_up_no_other_model(start: Start, repository: Path, gate: Gate) -> None:
    running = leading(start, repository, gate, "--exit-timeout-secs=0.3")

    late = running.infer("quick", WAITS, headers={"Request-Timeout": "0.2"})
    live = running.ask("GET", "/v2/health/live")
    other = running.infer("echo", 1.0)
    waiting = running.infer("quick", 1.0, headers={"Request-Timeout": "0.05"})
    gate.open()
    again = running.infer("quick", 1.0, headers={"Request-Timeout": "30"})

    assert (late.status, live.status, other.status, waiting.status, again.status) == (504, 200, 200, 504, 200)


def test_a_signal_stops_the_server_while_one_leads_and_while_one_hangs(
    start: Start, repository: Path, gate: Gate
) -> None:
    running = leading(start, repository, gate)
    running.terminate()
    assert running.exit_status() == 0

    running = leading(start, repository, gate, "--exit-timeout-secs=0.3")
    assert running.infer("quick", WAITS, headers={"Request-Timeout": "0.1"}).status == 504
    running.terminate()
    assert running.exit_status() == 1


SENDS = """
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [-1]})
        config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [-1]})
        return config

    def execute(self, requests):
        names, frame = [], sys._getframe()
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        leads = pb_utils.Tensor("y", np.float32(["_execute_some" in names]))
        for request in requests:
            sender = request.get_response_sender()
            sender.send(pb_utils.InferenceResponse([leads]), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        if "_execute_some" in names:
            raise ValueError("too late")
"""


def test_one_that_raises_after_it_has_answered_has_answered(start: Start, repository: Path) -> None:
    models.write(repository, "sends", SENDS)
    running = start()

    def leads() -> bool:
        answer = running.infer("sends", 1.0)
        assert answer.status == 200, answer.body
        led: bool = answer.document["outputs"][0]["data"] == [1.0]
        return led

    until(leads)
