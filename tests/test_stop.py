"""How the process of `naiad serve` ends when a model works against it."""

import http.client
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

import pytest

from .written import ECHO, Gate, write_model

NAIAD = Path(sys.executable).with_name("naiad")

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

CLOSES_STDERR = "import sys\nsys.stderr.close()\n" + ECHO

LOGS_MUCH = """
import logging

from naiad_custom import FP32, Array, model

@model
def echo(x: Array[FP32, 1]) -> Array[FP32, 1]:
    for _ in range(2000):
        logging.getLogger("naiad.model").warning("x" * 100)
    return x
"""

FORKS = """
import os
from pathlib import Path
from time import sleep

from naiad_custom import FP32, Array, model

@model
def echo(x: Array[FP32, 1]) -> Array[FP32, 1]:
    child = os.fork()
    if not child:
        os.close(1)
        os.close(2)
        sleep(120)
        os._exit(0)
    Path({child!r}).write_text(str(child))
    return x
"""

SAYS_ITS_PROCESS = """
import os
from pathlib import Path

Path({entered!r}).write_text(str(os.getpid()))
Path({gate!r}).read_text()
"""

CRASHES_ONCE = """
import os
from pathlib import Path

from naiad_custom import FP32, Array, model

@model
def echo(x: Array[FP32, 1]) -> Array[FP32, 1]:
    if not Path({crashed!r}).exists():
        Path({crashed!r}).write_text("once")
        os.abort()
    return x
"""

ENDS_SLOWLY = (
    """
import os
import sys
import time

class Last:
    def __del__(self, write=os.write, sleep=time.sleep):
        write(1, b"the interpreter ends\\n")
        sleep(1)

sys.modules["the last one"] = Last()
"""
    + ECHO
)

HOLDS_THE_LOOP = """
from pathlib import Path
from threading import Event

from naiad_custom import FP32, Array, model

@model
def holds(x: Array[FP32, 1]) -> Array[FP32, 1]:
    Path({entered!r}).write_text("in")
    Event().wait()
"""

ON_THE_LOOP = 'parameters { key: "execute_on" value { string_value: "event_loop" } }'


CLIENT = """
import json, sys, urllib.request
body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [7]}]}
urllib.request.urlopen(urllib.request.Request(sys.argv[1], json.dumps(body).encode()))
"""


def is_refused(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_model_that_closed_stderr_does_not_keep_a_signal_from_the_server(
    serve: "Serve", tmp_path: Path, number: signal.Signals
) -> None:
    write_model(tmp_path, "echo", CLOSES_STDERR)
    server = serve(tmp_path)
    subprocess.run([sys.executable, "-c", CLIENT, f"{server.url}/v2/models/echo/infer"], check=True)

    server.signal(number)

    assert server.exit_status() == 0


@pytest.mark.parametrize(("streams", "options"), [("<&- >{log} 2>&1", []), ("<&- >&- 2>&-", ["--log-file={log}"])])
def test_a_server_that_is_started_with_closed_streams_serves_and_stops(
    tmp_path: Path, streams: str, options: list[str]
) -> None:
    """A socket had the number of one, and libuv ends the process when it is to close such a descriptor."""
    write_model(tmp_path / "models", "echo", ECHO)
    log = tmp_path / "log"
    ports = [f"--{each}-port=0" for each in ("http", "grpc", "metrics", "dashboard")]
    command = [str(NAIAD), "serve", str(tmp_path / "models"), *ports, *(each.format(log=log) for each in options)]
    server = subprocess.Popen(["sh", "-c", f'exec "$0" "$@" {streams.format(log=log)}', *command])

    try:
        while not (log.exists() and (port := re.search(r"http frontend listens at \S+:(\d+)", log.read_text()))):
            assert server.poll() is None
            sleep(0.02)
        url = f"http://127.0.0.1:{port.group(1)}/v2/models/echo/infer"
        subprocess.run([sys.executable, "-c", CLIENT, url], check=True)
        server.send_signal(signal.SIGTERM)
        status = server.wait(60)
    finally:
        server.kill()
        server.wait()

    assert status == 0


def test_a_process_whose_event_loop_stands_still_ends_all_the_same(serve: "Serve", tmp_path: Path) -> None:
    entered = tmp_path / "entered"
    write_model(tmp_path / "models", "holds", HOLDS_THE_LOOP.format(entered=str(entered)), ON_THE_LOOP)
    server = serve(tmp_path / "models", "--exit-timeout-secs=0")
    client = subprocess.Popen([sys.executable, "-c", CLIENT, f"{server.url}/v2/models/holds/infer"])

    try:
        while not entered.exists():
            assert client.poll() is None
        server.signal(signal.SIGTERM)
        status = server.exit_status()
    finally:
        client.kill()
        client.wait()

    assert status == 1
    assert "the stop took 5 s" in server.lines[-1]
    assert "the event loop does not run" in server.lines[-1]
    assert "thread is in wait" in server.lines[-1]


def test_a_stopping_server_is_not_ready_and_answers_clients_that_are_connected(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve(tmp_path, "--lame-duck-secs=60")
    address = server.url.removeprefix("http://")
    connection, silent = http.client.HTTPConnection(address), http.client.HTTPConnection(address)
    silent.connect()  # the lame-duck time lasts as long as a client is connected, and each answer closes a connection

    def status(method: str, path: str, body: str = "") -> int:
        connection.request(method, path, body)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    server.wait_for("metrics frontend listens")  # the last one: before it the server is not ready
    while status("GET", "/v2/health/ready") != 200:
        assert server.url
    server.signal(signal.SIGTERM)
    while status("GET", "/v2/health/ready") == 200:
        pass
    body = '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [7]}]}'
    statuses = [status("POST", "/v2/models/echo/infer", body), status("GET", "/v2/health/live")]
    connection.close()
    silent.close()

    assert statuses == [200, 200]
    assert server.exit_status() == 0


def test_a_log_pipe_that_is_not_read_holds_up_neither_a_model_nor_the_stop(tmp_path: Path) -> None:
    write_model(tmp_path, "echo", LOGS_MUCH)
    words = [
        "serve",
        "--http-address=127.0.0.1",
        "--http-port=0",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--allow-dashboard=false",
        tmp_path,
    ]
    process = subprocess.Popen([NAIAD, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    url = next(match.group(1) for line in process.stdout if (match := re.search(r"listens at (http:\S+\d)", line)))

    try:
        subprocess.run([sys.executable, "-c", CLIENT, f"{url}/v2/models/echo/infer"], check=True, timeout=60)
        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.stdout.close()


def test_a_child_that_a_model_forked_does_not_keep_the_ports(serve: "Serve", tmp_path: Path) -> None:
    child = tmp_path / "child"
    write_model(tmp_path / "models", "echo", FORKS.format(child=str(child)))
    server = serve(tmp_path / "models")
    started = [server.wait_for(r"(\w+) frontend listens at \S+:(\d+)").groups() for _ in range(3)]
    ports = {name: int(port) for name, port in started}

    subprocess.run([sys.executable, "-c", CLIENT, f"http://127.0.0.1:{ports['http']}/v2/models/echo/infer"], check=True)
    server.signal(signal.SIGTERM)
    try:
        status = server.exit_status()
        refused = [is_refused(port) for port in ports.values()]
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)

    assert status == 0
    assert all(refused)


def test_a_supervised_server_that_crashed_is_started_again_and_stops_with_its_supervisor(
    serve: "Serve", tmp_path: Path
) -> None:
    write_model(tmp_path / "models", "echo", CRASHES_ONCE.format(crashed=str(tmp_path / "crashed")))
    server = serve(tmp_path / "models", "--restart")

    first = subprocess.run([sys.executable, "-c", CLIENT, f"{server.url}/v2/models/echo/infer"], capture_output=True)
    server.wait_for(r"the server ended with signal 6 \(Aborted\); it is started again in 1 s")
    second = subprocess.run([sys.executable, "-c", CLIENT, f"{server.url}/v2/models/echo/infer"], capture_output=True)
    server.signal(signal.SIGTERM)

    assert server.exit_status() == 0
    assert (first.returncode, second.returncode) == (1, 0)
    assert server.lines[-1].endswith('"stopped"')


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says that the parent has ended")
def test_a_supervised_server_that_still_loads_stops_with_its_supervisor(serve: "Serve", tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    write_model(tmp_path / "models", "slow", SAYS_ITS_PROCESS.format(**gate.paths) + ECHO)
    supervisor = serve(tmp_path / "models", "--restart")
    server = int(Path(gate.paths["entered"]).read_text())
    descriptor = os.pidfd_open(server)
    ends = select.poll()
    ends.register(descriptor, select.POLLIN)

    supervisor.signal(signal.SIGKILL)

    try:
        assert ends.poll(30_000)
    finally:
        os.close(descriptor)
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


def test_a_supervised_server_that_cannot_start_is_not_started_again(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "broken", "import no_such_module")

    server = serve(tmp_path, "--restart")

    assert server.exit_status() == 1
    assert not any("started again" in line for line in server.lines)


def test_a_signal_that_comes_while_the_interpreter_ends_changes_nothing(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ENDS_SLOWLY)
    server = serve(tmp_path)
    assert server.url

    server.signal(signal.SIGTERM)
    server.wait_for("the interpreter ends")
    server.signal(signal.SIGTERM)

    assert server.exit_status() == 0
