"""The priority of a model's process: low while the model loads, that of the server when it executes."""

import json
import os
import resource
import subprocess
import sys
import time

import pytest

from naiad_process_workers.priority import LARGE_BYTES

from .conftest import Serve, Write

PRIORITIES = """
import json, os, threading
from pathlib import Path
import numpy as np
import triton_python_backend_utils as pb_utils

AUTOGROUP = Path("/proc/self/autogroup")

def priorities():
    threads = [os.getpriority(os.PRIO_PROCESS, int(each.name)) for each in Path("/proc/self/task").iterdir()]
    return threads, AUTOGROUP.read_text().split()[-1] if AUTOGROUP.exists() else ""

class TritonPythonModel:
    def initialize(self, args):
        self.loading = priorities()
        self.over = threading.Event()
        threading.Thread(target=self.over.wait, daemon=True).start()

    def execute(self, requests):
        text = np.array([json.dumps([self.loading, priorities()])], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", text)]) for _ in requests]
"""
CONFIG = """
    input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_STRING dims: 1 }
"""
UNPRIVILEGED = """
import os, resource
from naiad_process_workers.priority import LoadPriority, lower_for_good

def show():
    print(os.getpriority(os.PRIO_PROCESS, 0) - usual)

resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
usual = os.getpriority(os.PRIO_PROCESS, 0)
priority = LoadPriority()
show()
priority.end()
show()
lower_for_good()
show()
"""


@pytest.mark.parametrize("is_large", [True, False])
def test_a_large_model_loads_with_a_low_priority_and_executes_with_the_usual_one(
    write: Write, served: Serve, is_large: bool
) -> None:
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    may_take_back = os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[0] >= 20 - usual
    model = write("m", PRIORITIES, CONFIG)
    with (model / "1" / "weights").open("wb") as weights:
        weights.truncate(LARGE_BYTES if is_large else 1000)

    with served(model) as client:
        loading, executing = json.loads(client.infer(X=[0])["Y"][0])
        until = time.monotonic() + 20
        while executing[1] not in ("", "0"):  # Linux refuses to change a group soon after another one
            assert time.monotonic() < until
            executing = json.loads(client.infer(X=[0])["Y"][0])[1]

    assert set(loading[0]) == {usual + 10 if is_large and may_take_back else usual}
    assert set(executing[0]) == {usual}
    assert loading[1] in (("", "0", "10") if is_large else ("", "0"))


def test_a_process_that_could_not_take_its_priority_back_keeps_it_for_the_load() -> None:
    ended = subprocess.run([sys.executable, "-c", UNPRIVILEGED], capture_output=True, text=True, check=True)

    assert ended.stdout.split() == ["0", "0", "10"]
