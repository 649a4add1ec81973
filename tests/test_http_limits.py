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

from .conftest import FRONTENDS, NAIAD, ServerProcess
from .written import ECHO, write_model

FILES = 300
SILENT = 500
PATIENCE = 30.0
REQUEST = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [7]}]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that may open 300 files."""
    write_model(tmp_path / "models", "echo", ECHO, 'backend: "python"')
    local = [f"--{name}-address=127.0.0.1" for name in FRONTENDS]
    ports = [f"--{name}-port=0" for name in FRONTENDS]
    limited = ["sh", "-c", f'ulimit -n {FILES}; exec "$0" "$@"']
    process = ServerProcess([*limited, NAIAD, "serve", *local, *ports, tmp_path / "models"])
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


def test_silent_clients_do_not_shut_others_out(server: ServerProcess) -> None:
    url = server.url
    port = int(url.rpartition(":")[2])
    metrics = server.wait_for(r"metrics frontend listens at (http://\S+/metrics)").group(1)

    with ExitStack() as stack:
        for _ in range(SILENT):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
        live = answers_in_time(f"{url}/v2/health/live")
        scraped = answers_in_time(metrics)
        loaded = answers_in_time(f"{url}/v2/repository/index", {})
        inferred = answers_in_time(f"{url}/v2/models/echo/infer", REQUEST)

    assert (live, scraped, loaded, inferred) == (True, True, True, True)
