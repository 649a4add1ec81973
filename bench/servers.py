"""Starts and stops the servers that are measured, one at a time, and looks at their processes."""

import functools
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
WORK = PROJECT / "bench" / ".work"
"""Where logs and built models go; git does not see it."""

OWN_COMMAND = Path(sys.executable).with_name("naiad")
_READY_WITHIN = 60.0
_STOPPED_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a server listens."""

    http: int
    grpc: int
    metrics: int

    @classmethod
    def free(cls) -> "Ports":
        """Ports without a listener."""
        return cls(free_port(), free_port(), free_port())


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is ready: its name, ports, process, and how long it took from its start to ready (seconds)."""

    name: str
    ports: Ports
    process: subprocess.Popen[bytes]
    start_seconds: float

    @property
    def port(self) -> int:
        """Where it speaks HTTP."""
        return self.ports.http

    def get(self, path: str) -> Any:
        """The JSON document at that path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path)
        document = json.loads(connection.getresponse().read())
        connection.close()
        return document

    def metrics_text(self) -> str:
        """What the metrics port tells."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.metrics, timeout=10)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def cpu_seconds(self) -> float:
        """Processor time that the process and its children have used."""
        return sum(_cpu_seconds(pid) for pid in _family(self.process.pid))

    def inference_count(self, model: str) -> int:
        """How many inferences a model has made, by the server's own count."""
        return sum(int(version["inference_count"]) for version in self.get(f"/v2/models/{model}/stats")["model_stats"])

    def resident_megabytes(self) -> float:
        """Resident memory of the process and its children, in 10^6 bytes."""
        return sum(_resident_bytes(pid) for pid in _family(self.process.pid)) / 1e6

    def processes(self) -> int:
        """How many processes the server and its children are."""
        return len(list(_family(self.process.pid)))

    def threads(self) -> int:
        """How many threads the process has."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def descriptors(self) -> int:
        """How many files and sockets the process has open, but for the two by which uvloop hears of signals.

        uvloop has these only while the main thread runs it. While the thread of an instance does, the main thread waits
        for a lock.
        """
        process = Path(f"/proc/{self.process.pid}")
        main_thread_waits_in = (process / "task" / process.name / "wchan").read_text()
        return len(list((process / "fd").iterdir())) - (0 if "futex" in main_thread_waits_in else 2)


@dataclass(frozen=True, slots=True)
class Naiad:
    """Naiad: this project's, from the environment that runs the benchmark, or another checkout's by its command."""

    name: str = "Naiad"
    command: Path = OWN_COMMAND

    @contextmanager
    def serve(self, repository: Path, *options: str) -> Iterator[Running]:
        """A server over that repository, with these further options, ready until the block ends."""
        ports = Ports.free()
        with _served(self.name, serve_command(self.command, repository, ports, options), ports, {}) as running:
            yield running


@dataclass(frozen=True, slots=True)
class Peer:
    """The server that Naiad is compared with, behind a script `SCRIPT serve REPOSITORY`."""

    script: Path
    name: str = "Triton"

    @contextmanager
    def serve(self, repository: Path, *options: str) -> Iterator[Running]:
        """A server over that repository, with these further options, ready until the block ends."""
        ports = Ports.free()
        endpoints = {"PEER_HTTP": ports.http, "PEER_GRPC": ports.grpc, "PEER_METRICS": ports.metrics}
        environment = {name: str(port) for name, port in endpoints.items()}
        with _served(self.name, [str(self.script), "serve", str(repository), *options], ports, environment) as running:
            yield running


def find_peer() -> tuple[Peer | None, str]:
    """The peer where it has been set up, else None and the reason."""
    script = Path(os.environ.get("NAIAD_PEER", PROJECT.parent / "shared" / "tools" / "peer"))
    if not os.access(script, os.X_OK):
        return None, f"there is no peer script at {script} (NAIAD_PEER names another place)"
    home = subprocess.run([script, "home"], capture_output=True, text=True, check=True).stdout.strip()
    if not (Path(home) / "ready").exists():
        return None, f"the peer is not set up in {home} ({script} setup does it)"
    return Peer(script), ""


def serve_command(naiad: Path, repository: Path, ports: Ports, options: Sequence[str]) -> list[str]:
    """The command line of a server of Naiad on these ports of the loopback interface.

    Each option is one word. Those that another checkout does not know are dropped. Raises ValueError for an option that
    this one does not know, and for another word.
    """
    if words := [each for each in options if not each.startswith("--")]:
        raise ValueError(f"{words[0]} is not an option; write options as --name=value")
    known = [each for each in ("--dashboard-port=0", *options) if each.partition("=")[0] in _options_of(naiad)]
    if naiad == OWN_COMMAND and (unknown := set(options).difference(known)):
        raise ValueError(f"naiad serve does not know {', '.join(sorted(unknown))}")
    return [
        str(naiad),
        "serve",
        str(repository),
        "--http-address=127.0.0.1",
        f"--http-port={ports.http}",
        "--grpc-address=127.0.0.1",
        f"--grpc-port={ports.grpc}",
        "--metrics-address=127.0.0.1",
        f"--metrics-port={ports.metrics}",
        *known,
    ]


@functools.cache
def _options_of(naiad: Path) -> frozenset[str]:
    """The options that this installation knows: an earlier one refuses those that came later."""
    for topic in ("--help=all", "--help"):  # before there were topics, the help had all options
        ran = subprocess.run([naiad, "serve", topic], capture_output=True, text=True, check=False)
        if ran.returncode == 0:
            break
    ran.check_returncode()
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", ran.stdout))


def free_port() -> int:
    """A TCP port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _served(name: str, command: Sequence[str], ports: Ports, environment: dict[str, str]) -> Iterator[Running]:
    WORK.mkdir(parents=True, exist_ok=True)
    log = WORK / f"{name.lower()}.log"
    with log.open("wb") as out:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **environment})
        try:
            _wait_until_ready(name, process, ports.http, log)
            yield Running(name, ports, process, time.monotonic() - started)
        finally:
            _stop(process)


def _wait_until_ready(name: str, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Ask every 5 ms, which costs the server under 1 % of a core."""
    deadline = time.monotonic() + _READY_WITHIN
    while not _is_ready(port):
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended with status {process.returncode} before it was ready; see {log}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{name} was not ready within {_READY_WITHIN:g} s; see {log}")
        time.sleep(0.005)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v2/health/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOPPED_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _family(pid: int) -> list[int]:
    pids = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            pids.extend(_family(int(child)))
    return pids


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime of proc(5)


def _resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024
