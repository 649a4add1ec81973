"""The cluster as tests see it: applications, processes of Ray, clients of either protocol, and load."""

import itertools
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import obstore
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

from .models import ECHO

APPLICATION = "naiad"
THREADS = 4
"""The threads of a load, and so the requests that it has in flight."""
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Application:
    """A deployed application: `folder` has its file, `http` and `grpc` are its addresses.

    Its models are in `folder`, or in `bucket`, a store of obstore.
    """

    folder: Path
    http: str
    grpc: str
    bucket: Any = None

    def bring_up(self) -> None:
        """Deploy the application as its file and models are now."""
        from naiad_ray.deploying import deploy
        from naiad_ray.reading import read_description

        deploy(read_description(self.folder))

    def update(self) -> float:
        """Have the model `echo` add a number to its input, the result, in replicas that come up from now on."""
        number = float(next(_NUMBERS))
        source = ECHO.replace("return x", f"return x + {number}")
        if self.bucket is None:
            (self.folder / "models" / "echo" / "1" / "model.py").write_text(source)
        else:
            obstore.put(self.bucket, "models/echo/1/model.py", source.encode(), use_multipart=False)
        return number

    def scale(self, text: str) -> None:
        """Deploy with that `replicas: …` or `autoscale: …` as the last line of the file."""
        file = self.folder / "naiad-ray.yaml"
        lines = [
            line for line in file.read_text().splitlines() if not line.lstrip().startswith(("replicas:", "autoscale:"))
        ]
        file.write_text("\n".join([*lines, f"    {text}", ""]))
        self.bring_up()

    def client(self, module: ModuleType) -> Any:
        """A client of that module of Triton's library."""
        return module.InferenceServerClient(self.http if module is httpclient else self.grpc)


def tensor(module: ModuleType, name: str, value: float) -> list[Any]:
    """The inputs of a request with one FP32[1, 1]."""
    tensors = [module.InferInput(name, [1, 1], "FP32")]
    tensors[0].set_data_from_numpy(np.array([[value]], np.float32))
    return tensors


def text(module: ModuleType, content: bytes) -> list[Any]:
    """The inputs of a request with one BYTES[1]."""
    tensors = [module.InferInput("text", [1], "BYTES")]
    tensors[0].set_data_from_numpy(np.array([content], object))
    return tensors


def pids_of(start: str, part: str = "") -> list[int]:
    """The processes whose command line has that start and part: for actors, Ray makes their name the command line."""
    return [pid for pid, line in _command_lines() if line.startswith(start) and part in line]


def children_of(parent: int) -> list[int]:
    """The processes that a process has started."""
    children = []
    for pid, _ in _command_lines():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            children.append(pid)
    return children


def _command_lines() -> list[tuple[int, str]]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append((int(path.parent.name), path.read_bytes().decode("utf-8", "replace")))
        except OSError:
            continue
    return lines


def replica_of(deployment: str) -> str:
    """The name that Ray gives to the replicas of a deployment."""
    return f"ray::ServeReplica:{APPLICATION}:{deployment}"


def kill(*pids: int) -> None:
    """Kill processes; those that have ended meanwhile are no error."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def replicas_of(deployment: str) -> int:
    """How many replicas of a deployment run."""
    from ray import serve

    return int(serve.status().applications[APPLICATION].deployments[deployment].replica_states.get("RUNNING", 0))


def run_command(line: str, folder: Path, address: str) -> str:
    """What a command of this environment prints, in a folder and for a running cluster. It must end well."""
    program, *words = shlex.split(line)
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *words],
        cwd=folder,
        env={**os.environ, "RAY_ADDRESS": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def wait_until(condition: Callable[[], bool], seconds: float = 240.0) -> float:
    """The seconds until the condition holds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "it did not happen in time"
        time.sleep(0.1)
    return time.monotonic() - start


def wait_for_replicas(deployment: str, count: int, *gone: int) -> float:
    """The seconds until a deployment has so many replicas, none of which is one of the processes `gone`."""

    def replaced() -> bool:
        pids = {*pids_of(replica_of(deployment))}
        return not pids & {*gone} and len(pids) == count and replicas_of(deployment) == count

    return wait_until(replaced)


class Load:
    """Requests of several threads until `stop`: threads of even number use gRPC, the others HTTP.

    `failures` are the errors, `longest` is the longest time in seconds in which no request was answered.
    """

    def __init__(self, application: Application, threads: int = THREADS, seconds: float = 0.05) -> None:
        self.failures: list[str] = []
        self.answered = 0
        self.longest = 0.0
        self._last = time.monotonic()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._run, args=(application, grpcclient if index % 2 == 0 else httpclient, seconds)
            )
            for index in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, application: Application, module: ModuleType, seconds: float) -> None:
        client = application.client(module)
        inputs = tensor(module, "x", seconds)
        while not self._over.is_set():
            try:
                client.infer("echo", inputs)
            except (InferenceServerException, OSError) as error:
                self.failures.append(str(error))
            else:
                now = time.monotonic()
                self.answered += 1
                self.longest, self._last = max(self.longest, now - self._last), now

    def wait_for_more(self, count: int = 20) -> None:
        """Wait until so many more requests are answered."""
        before = self.answered
        wait_until(lambda: self.answered >= before + count)

    def stop(self) -> None:
        """Let the threads end."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def report(self, what: str) -> None:
        """Print the figures; `make test-ray ARGS=-s` shows them."""
        total = self.answered + len(self.failures)
        print(f"\n{what}: {len(self.failures)} of {total} requests failed; {self.longest:.1f} s without an answer")
