"""A real server whose isolated models misbehave in every way, under load by both protocols."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http

from .written import write_model

if TYPE_CHECKING:
    from .conftest import ServerProcess

MODEL = """
import os, signal, sys, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            fault = {1: crash, 2: lambda: os._exit(3), 3: sys.exit, 4: lambda: os.closerange(3, 1000), 5: hang,
                     6: lambda: bytearray(20 << 30), 7: lambda: os.kill(os.getpid(), signal.SIGTERM)}.get(int(x[0]))
            if fault:
                fault()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]))
        return responses

def crash():
    import ctypes
    ctypes.string_at(0)

def hang():
    while True:
        pass
"""
CONFIG = """
backend: "python"
input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
"""
BAD = """
parameters { key: "isolation" value { string_value: "process" } }
parameters { key: "execution_timeout" value { string_value: "1" } }
parameters { key: "memory_limit" value { string_value: "4G" } }
"""
FAULTS = (1, 2, 3, 4, 5, 6, 7)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """`good`, on a thread, and `bad`, isolated."""
    for name, config in {"good": CONFIG, "bad": CONFIG + BAD}.items():
        write_model(tmp_path / "models", name, MODEL, config)
    return tmp_path / "models"


def infer(client, tensor, model: str, value: float) -> float:
    """What the model answers."""
    x = tensor("X", [1], "FP32")
    x.set_data_from_numpy(np.array([value], np.float32))
    return float(client.infer(model, [x]).as_numpy("Y")[0])


def test_no_fault_of_an_isolated_model_reaches_another_one(serve: "Callable[..., ServerProcess]", models: Path) -> None:
    server = serve(models)
    results = [server.wait_for(r"(http|grpc) frontend listens at \S*?([\d.]+:\d+)") for _ in range(2)]
    addresses = {each.group(1): each.group(2) for each in results}
    answered, failures, over = [0, 0], [], threading.Event()

    def load(index: int, library, address: str) -> None:
        with library.InferenceServerClient(address) as client:
            while not over.is_set():
                try:
                    assert infer(client, library.InferInput, "good", 0.5) == 0.5
                    answered[index] += 1
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a lost request
                    failures.append(error)
                    return

    threads = [
        threading.Thread(target=load, args=(index, library, addresses[name]))
        for index, (name, library) in enumerate({"http": http, "grpc": grpc}.items())
    ]
    for thread in threads:
        thread.start()
    refusals = {}
    with http.InferenceServerClient(addresses["http"], network_timeout=60, connection_timeout=60) as client:
        for fault in FAULTS:
            with pytest.raises(http.InferenceServerException) as refused:
                infer(client, http.InferInput, "bad", fault)
            refusals[fault] = str(refused.value)
            until = time.monotonic() + 60
            while True:
                try:
                    assert infer(client, http.InferInput, "bad", 0) == 0
                    break
                except http.InferenceServerException:
                    assert time.monotonic() < until
                    time.sleep(0.05)
    over.set()
    for thread in threads:
        thread.join()

    assert failures == []
    assert min(answered) > 10
    expected = ("signal 11", "exit code 3", "SystemExit", "closed its link", "execution_timeout", "Memory", "signal 15")
    for fault, words in zip(FAULTS, expected, strict=True):
        assert words in refusals[fault], (fault, refusals[fault])
    server.signal(signal.SIGTERM)
    assert server.exit_status() == 0


@pytest.mark.parametrize("fault", [0, 5])
def test_the_system_ends_the_processes_of_a_server_that_is_killed(
    serve: "Callable[..., ServerProcess]", models: Path, fault: int
) -> None:
    (models / "bad" / "config.pbtxt").write_text(CONFIG + BAD.replace('"1"', '"100"'))
    server = serve(models, frontends=["http"])
    with http.InferenceServerClient(server.url.removeprefix("http://")) as client:
        infer(client, http.InferInput, "bad", 0)
        (process,) = children_of(server)
        if fault:
            idle = ticks(process)
            threading.Thread(target=ignore, args=(client, http, fault), daemon=True).start()
            while ticks(process) < idle + 20:  # it hangs, and computes
                time.sleep(0.01)
        server.signal(signal.SIGKILL)
        server.exit_status()

        until = time.monotonic() + 10
        while (process / "exe").exists() and "Z" not in (process / "stat").read_text().rpartition(")")[2][:3]:
            assert time.monotonic() < until
            time.sleep(0.02)


def ignore(client, http, fault: float) -> None:
    """Send a request whose outcome does not matter."""
    try:
        infer(client, http.InferInput, "bad", fault)
    except Exception:  # noqa: BLE001 - the server is killed
        return


def ticks(process: Path) -> int:
    """The processor time that a process has used, in hundredths of a second."""
    return int((process / "stat").read_text().rpartition(")")[2].split()[11])


def children_of(server: "ServerProcess") -> list[Path]:
    """The processes that the server has started."""
    tasks = Path(f"/proc/{server._process.pid}/task").iterdir()
    return [Path("/proc") / pid for task in tasks for pid in (task / "children").read_text().split()]
