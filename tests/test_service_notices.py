"""What `naiad serve` tells systemd, received from real server processes by a socket of datagrams."""

import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .written import ECHO, WAITS_TO_LOAD, Gate, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

READS_THE_VARIABLE = """
import os
if "NOTIFY_SOCKET" in os.environ:
    raise RuntimeError("a model speaks for the server")
"""


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket that systemd would receive from; servers that are started now have its variable."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(60.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield receiver


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def received_until(systemd: socket.socket, state: str) -> list[dict[str, str]]:
    """The datagrams up to the first with that state, each as its assignments."""
    datagrams: list[dict[str, str]] = []
    while not datagrams or state not in datagrams[-1]:
        lines = systemd.recv(4096).decode().splitlines()
        datagrams.append({name: value for name, _, value in (line.partition("=") for line in lines)})
    return datagrams


def status_code(url: str) -> int:
    with urllib.request.urlopen(url) as answer:
        code: int = answer.status
        return code


def test_systemd_is_notified_of_the_loads_the_ready_server_and_its_stop(
    serve: "Serve", repository: Path, tmp_path: Path, systemd: socket.socket
) -> None:
    gate = Gate(tmp_path)
    write_model(repository, "echo", READS_THE_VARIABLE + ECHO)
    write_model(repository, "slow", WAITS_TO_LOAD.format(**gate.paths) + ECHO)
    server = serve(repository, frontends=["http"])
    gate.wait_until_entered()

    progress: list[dict[str, str]] = []
    while not progress or progress[-1] != {"STATUS": "loading models: 1 of 2 done, waiting for slow"}:
        progress += received_until(systemd, "STATUS")
    assert not [datagram for datagram in progress if "READY" in datagram]

    gate.let_through()
    assert received_until(systemd, "READY")[-1] == {"READY": "1", "STATUS": f"serves {repository}"}
    assert status_code(f"{server.url}/v2/health/ready") == 200

    server.signal(signal.SIGTERM)
    assert received_until(systemd, "STOPPING")[-1] == {
        "STOPPING": "1",
        "STATUS": "stopping; requests in flight have 30 s to end",
    }
    assert server.exit_status() == 0


def test_a_server_that_cannot_start_is_never_ready_and_says_why(
    serve: "Serve", repository: Path, systemd: socket.socket
) -> None:
    write_model(repository, "broken", "raise ValueError('no such word')\n")
    server = serve(repository, frontends=["http"])

    datagrams = received_until(systemd, "STOPPING")

    assert server.exit_status() == 1
    assert not [datagram for datagram in datagrams if "READY" in datagram]
    assert "fix broken" in datagrams[-1]["STATUS"]


def test_a_server_that_serves_without_a_broken_model_is_ready_and_names_it(
    serve: "Serve", repository: Path, systemd: socket.socket
) -> None:
    write_model(repository, "broken", "raise ValueError('no such word')\n")
    write_model(repository, "echo", ECHO)
    serve("--exit-on-error=false", repository, frontends=["http"])

    ready = received_until(systemd, "READY")[-1]

    assert ready["STATUS"].startswith(f"serves {repository}; not ready when it had started: ")
    assert "broken" in ready["STATUS"]


def test_a_stop_while_the_models_load_is_no_ready_server(
    serve: "Serve", repository: Path, tmp_path: Path, systemd: socket.socket
) -> None:
    gate = Gate(tmp_path)
    write_model(repository, "slow", WAITS_TO_LOAD.format(**gate.paths) + ECHO)
    server = serve(repository, frontends=["http"])
    gate.wait_until_entered()

    server.signal(signal.SIGTERM)
    datagrams = received_until(systemd, "STOPPING")

    gate.let_through()
    server.exit_status()
    systemd.setblocking(False)
    with pytest.raises(BlockingIOError):  # no datagram is left
        received_until(systemd, "READY")
    assert not [datagram for datagram in datagrams if "READY" in datagram]


def test_under_a_supervisor_the_server_itself_is_the_one_that_is_ready(
    serve: "Serve", repository: Path, systemd: socket.socket
) -> None:
    write_model(repository, "echo", ECHO)
    server = serve("--restart", repository, frontends=["http"], is_new=True)

    assert received_until(systemd, "READY")[-1]["STATUS"] == f"serves {repository}"
    server.signal(signal.SIGTERM)
    assert received_until(systemd, "STOPPING")[-1]["STOPPING"] == "1"
    assert server.exit_status() == 0
