"""A server that may open few files serves on while more clients than that say nothing."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from time import monotonic, sleep

import pytest
import tritonclient.grpc as triton

from .conftest import FRONTENDS, NAIAD, ServerProcess
from .written import ECHO, write_model

FILES = 300
SILENT = 500
PATIENCE = 30.0
SOON = "--grpc-handshake-timeout=2000"
"""Silent clients of gRPC keep others out until their time for a handshake is over."""
REQUEST = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [7]}]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that may open 300 files."""
    write_model(tmp_path / "models", "echo", ECHO, 'backend: "python"')
    local = [f"--{name}-address=127.0.0.1" for name in FRONTENDS]
    ports = [f"--{name}-port=0" for name in FRONTENDS]
    limited = ["sh", "-c", f'ulimit -n {FILES}; exec "$0" "$@"']
    process = ServerProcess([*limited, NAIAD, "serve", *local, *ports, SOON, tmp_path / "models"])
    yield process
    process.end()


def status(url: str, document: object = None) -> int:
    """The status of the answer, 0 where there is none."""
    content = None if document is None else json.dumps(document).encode()
    try:
        with urllib.request.urlopen(url, content, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, HTTPException):
        return 0


def answers_in_time(url: str, document: object = None) -> bool:
    """Whether there is a 200 before long."""
    deadline = monotonic() + PATIENCE
    while status(url, document) != 200:
        if monotonic() > deadline:
            return False
        sleep(0.1)
    return True


def is_live_in_time(address: str) -> bool:
    """Whether a gRPC client is answered before long."""
    deadline = monotonic() + PATIENCE
    while True:
        try:
            with triton.InferenceServerClient(address) as client:
                return bool(client.is_server_live(client_timeout=5))
        except triton.InferenceServerException:
            if monotonic() > deadline:
                return False
            sleep(0.1)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_silent_clients_do_not_shut_others_out(server: ServerProcess, protocol: str) -> None:
    addresses: dict[str, str] = {}
    while len(addresses) < len(FRONTENDS):
        name, address = server.wait_for(r"(\w+) frontend listens at \S*?([\d.]+:\d+)").groups()
        addresses[name] = address
    url = f"http://{addresses['http']}"
    host, _, port = addresses[protocol].rpartition(":")

    with ExitStack() as stack:
        for _ in range(SILENT):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
        live = answers_in_time(f"{url}/v2/health/live")
        called = is_live_in_time(addresses["grpc"])
        scraped = answers_in_time(f"http://{addresses['metrics']}/metrics")
        loaded = answers_in_time(f"{url}/v2/repository/index", {})
        inferred = answers_in_time(f"{url}/v2/models/echo/infer", REQUEST)

    assert (live, called, scraped, loaded, inferred) == (True, True, True, True, True)
