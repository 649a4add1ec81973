"""Starts both servers on one repository, and stops them."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from .answers import Ports

_READY_WITHIN = 120.0
_STOPPED_WITHIN = 40.0


class DiedAtStartError(RuntimeError):
    """A server ended before it had started."""


def free_ports(folder: Path) -> Ports:
    """Three TCP ports without a listener, for a server that may write into that folder."""
    folder.mkdir(exist_ok=True)
    probes = [socket.socket() for _ in range(3)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return Ports(*(probe.getsockname()[1] for probe in probes), folder=folder)
    finally:
        for probe in probes:
            probe.close()


@contextmanager
def naiad(repository: Path, options: Sequence[str], folder: Path) -> Iterator[Ports]:
    """Naiad from the environment that runs this, serving until the block ends."""
    ports = free_ports(folder)
    command = [
        str(Path(sys.executable).with_name("naiad")),
        "serve",
        str(repository),
        f"--http-port={ports.http}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-port={ports.metrics}",
        "--dashboard-port=0",
        *(option.format(folder=folder) for option in options),
    ]
    with _served(command, {}, ports):
        yield ports


@contextmanager
def peer(script: Path, repository: Path, options: Sequence[str], folder: Path) -> Iterator[Ports]:
    """The server behind the command `SCRIPT serve REPOSITORY [OPTION...]`, serving until the block ends."""
    ports = free_ports(folder)
    prefix = f"naiad_differential_{uuid4().hex}"  # of the shared memory that a server leaves behind when it dies
    command = [
        str(script),
        "serve",
        str(repository),
        f"--backend-config=python,shm-region-prefix-name={prefix}",
        *(option.format(folder=folder) for option in options),
    ]
    variables = {"PEER_HTTP": str(ports.http), "PEER_GRPC": str(ports.grpc), "PEER_METRICS": str(ports.metrics)}
    try:
        with _served(command, variables, ports, tries=3):  # its workers may fail to start while the machine is busy
            yield ports
    finally:
        for file in Path("/dev/shm").glob(f"{prefix}*"):
            file.unlink()


@contextmanager
def _served(command: Sequence[str], variables: dict[str, str], ports: Ports, tries: int = 1) -> Iterator[None]:
    for _ in range(tries - 1):
        with suppress(DiedAtStartError), _running(command, variables, ports):
            yield
            return
    with _running(command, variables, ports):
        yield


@contextmanager
def _running(command: Sequence[str], variables: dict[str, str], ports: Ports) -> Iterator[None]:
    log = ports.folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | variables, start_new_session=True
        )
    try:
        _wait_until_started(process, ports, log)
        yield
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server, and whatever it started that outlives it when it dies."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOPPED_WITHIN)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_until_started(process: subprocess.Popen[bytes], ports: Ports, log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while not _has_started(ports.http):
        if process.poll() is not None:
            raise DiedAtStartError(f"{process.args} ended with status {process.returncode}:\n{log.read_text()[-3000:]}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{process.args} had not started within {_READY_WITHIN:g} s; see {log}")
        time.sleep(0.02)


def _has_started(port: int) -> bool:
    """Whether the models of the start are loaded, well or not: a server that still loads them answers 503."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v2/health/ready")
        return connection.getresponse().status in (200, 400)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
