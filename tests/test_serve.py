"""`naiad serve` as a process: how it starts, what it says, how it ends."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .written import ECHO, WAITS_TO_ANSWER, WAITS_TO_LOAD, Gate, ask, infer, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

NAIAD = Path(sys.executable).with_name("naiad")


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("is_new", [True, False], ids=["new interpreter", "forked"])
def test_a_server_serves_until_a_signal_and_exits_with_0(serve: "Serve", repository: Path, is_new: bool) -> None:
    write_model(repository, "echo", ECHO)
    server = serve(repository, is_new=is_new)

    status, answer = infer(server.url, "echo", 7)
    server.signal(signal.SIGTERM)

    assert server.exit_status() == 0
    assert (status, answer["outputs"][0]["data"]) == (200, [7.0])
    assert [line.split("] ", 1)[1] for line in server.lines][-2:] == [
        '"Signal (15) received. Requests in flight have 30 s to end"',
        '"stopped"',
    ]


def test_a_request_in_flight_is_answered_and_further_signals_change_nothing(
    serve: "Serve", repository: Path, gate: Gate
) -> None:
    write_model(repository, "waits", WAITS_TO_ANSWER.format(**gate.paths))
    server = serve(repository)
    url = server.url

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(infer, url, "waits", 7)
        gate.wait_until_entered()
        server.signal(signal.SIGTERM)
        server.wait_for("Signal \\(15\\) received")
        server.signal(signal.SIGINT)
        server.wait_for("Signal \\(2\\) received again")
        gate.let_through()

    assert answer.result()[0] == 200
    assert server.exit_status() == 0


def test_a_model_that_never_answers_holds_the_server_no_longer_than_it_may(
    serve: "Serve", repository: Path, gate: Gate
) -> None:
    write_model(repository, "waits", WAITS_TO_ANSWER.format(**gate.paths))
    server = serve(repository, "--exit-timeout-secs=0.2")
    url = server.url

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(infer, url, "waits", 7)
        gate.wait_until_entered()
        server.signal(signal.SIGTERM)
        status = server.exit_status()

    assert status == 1
    assert answer.exception() is not None or answer.result()[0] >= 500
    assert any(line.startswith("E") and "model 'waits' version 1" in line for line in server.lines)


def test_a_signal_while_a_model_loads_ends_the_server(serve: "Serve", repository: Path, gate: Gate) -> None:
    write_model(repository, "slow", WAITS_TO_LOAD.format(**gate.paths))
    server = serve(repository)

    gate.wait_until_entered()
    server.signal(signal.SIGINT)

    assert server.exit_status() == 0


@pytest.mark.parametrize(
    "option",
    [
        "--http-restricted-api=Inference:key=secret",
        "--grpc-restricted-protocol=inference:my key=secret",
        "--http-header-forward-pattern=(",
        "--trace-config=rate=-1",
    ],
)
def test_a_mistake_in_the_value_of_an_option_is_status_2(serve: "Serve", repository: Path, option: str) -> None:
    server = serve(repository, option)

    assert server.exit_status() == 2
    assert option.split("=")[0] in server.lines[-1]


def test_a_mistake_in_the_settings_of_a_cache_is_status_2(serve: "Serve", repository: Path) -> None:
    server = serve(repository, "--cache-config=local,size=0")

    assert server.exit_status() == 2
    assert "cache 'local': " in server.lines[-1]


def test_models_that_fail_at_start_end_the_server_with_the_reasons(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO)
    write_model(repository, "broken", "import no_such_module")
    (repository / "broken" / "config.pbtxt").write_text("max_batch_sise: 4\nbackend: 3\n")

    server = serve(repository)

    assert server.exit_status() == 1
    message = "\n".join(server.lines)
    assert re.search(r"model 'broken' .*config\.pbtxt:1:1: .*max_batch_size", message)
    assert "fix broken, or add --exit-on-error=false" in message


def test_a_server_that_tolerates_failures_serves_the_other_models(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO)
    write_model(repository, "broken", "import no_such_module")

    url = serve(repository, "--exit-on-error=false").url

    assert infer(url, "echo", 7)[0] == 200
    status, answer = infer(url, "broken", 7)
    assert (status, "no_such_module" in answer["error"]) == (503, True)


def test_an_address_that_is_taken_ends_the_server_with_the_option_to_change(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        server = serve(repository, f"--http-port={port}")

        assert server.exit_status() == 1
    assert any(str(port) in line and "--http-port" in line for line in server.lines)


def test_two_services_on_one_port_are_both_named(serve: "Serve", repository: Path) -> None:
    server = serve(repository, "--model-control-mode=explicit", "--http-port=18000", "--grpc-port=18000")

    assert server.exit_status() == 2
    assert "at port 18000" in server.lines[-1]
    assert "--http-port or --grpc-port" in server.lines[-1] or "--grpc-port or --http-port" in server.lines[-1]


def test_two_servers_share_ports_where_both_options_say_so(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO)
    with socket.create_server(("127.0.0.1", 0)) as http, socket.create_server(("127.0.0.1", 0)) as grpc:
        ports = [f"--http-port={http.getsockname()[1]}", f"--grpc-port={grpc.getsockname()[1]}"]
    share = ["--reuse-http-port=true", "--reuse-grpc-port", "1"]

    urls = [serve(repository, *ports, *share).url for _ in range(2)]
    refused = serve(repository, *ports)

    assert urls[0] == urls[1]
    assert infer(urls[0], "echo", 7)[0] == 200
    assert refused.exit_status() == 1


def test_every_frontend_says_where_it_listens(serve: "Serve", repository: Path) -> None:
    server = serve(repository, "--model-control-mode=explicit")

    grpc = server.wait_for(r"grpc frontend listens at grpc://127\.0\.0\.1:(\d+)").group(1)
    http = server.wait_for(r"http frontend listens at http://127\.0\.0\.1:(\d+)").group(1)

    assert len({grpc, http, "0"}) == 3


@pytest.mark.parametrize(("address", "warnings"), [("0.0.0.0", 1), ("127.0.0.1", 0)])
def test_a_server_that_other_machines_reach_says_so_once(
    serve: "Serve", repository: Path, address: str, warnings: int
) -> None:
    server = serve(repository, f"--http-address={address}", "--grpc-address=127.0.0.1")
    server.wait_for("http frontend listens at")
    server.signal(signal.SIGTERM)
    assert server.exit_status() == 0

    assert len([line for line in server.lines if "docs/security.md" in line]) == warnings


def test_a_repository_that_is_not_there_ends_the_server(serve: "Serve", tmp_path: Path) -> None:
    server = serve(tmp_path / "nowhere")

    assert server.exit_status() == 1
    assert "nowhere' cannot be read: No such file or directory" in server.lines[-1]


@pytest.mark.parametrize(
    ("folder", "words", "ready"),
    [
        ("nowhere", ["--exit-on-error=false"], 400),
        ("models", [], 400),
        ("models", ["--model-control-mode=poll"], 200),
        ("models", ["--model-control-mode", "explicit"], 200),
    ],
)
def test_a_server_without_models_is_ready_where_they_can_come_later(
    serve: "Serve", repository: Path, folder: str, words: list[str], ready: int
) -> None:
    url = serve(repository.with_name(folder), *words).url

    assert ask(f"{url}/v2/health/live") == (200, {"live": True})
    assert ask(f"{url}/v2/health/ready") == (ready, {"ready": ready == 200})


def test_json_logs_carry_model_and_version(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO)
    server = serve(repository, "--log-format=json")

    server.wait_for("listens at")

    (ready,) = (line for line in map(json.loads, server.lines) if "READY" in line["message"])
    assert (ready["logger"], ready["level"], ready["model"], ready["version"]) == ("naiad.model", "INFO", "echo", "1")


def test_json_logs_of_a_failing_request_carry_its_id(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO.replace("return x", "raise RuntimeError('no luck')"))
    server = serve(repository, "--log-format=json")

    status, answer = infer(server.url, "echo", 7, id="r-9")

    assert (status, "no luck" in answer["error"]) == (500, True)
    line = json.loads(server.wait_for("no luck").string)
    assert (line["level"], line["model"], line["version"], line["request_id"]) == ("ERROR", "echo", "1", "r-9")


def test_a_log_file_takes_all_lines(serve: "Serve", repository: Path, tmp_path: Path) -> None:
    write_model(repository, "broken", "import no_such_module")
    log = tmp_path / "server.log"

    server = serve(repository, f"--log-file={log}", "--log-format=ISO8601")

    assert server.exit_status() == 1
    assert server.lines == []
    line_format = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [IWE] \d+ \w+\.py:\d+\] \".*\"")
    lines = log.read_text().splitlines()
    assert "    ModuleNotFoundError: No module named 'no_such_module'" in lines  # the traceback, indented
    assert [line for line in lines if not line.startswith("    ") and not line_format.fullmatch(line)] == []


def test_a_terminal_shows_progress_and_a_table_of_the_models(repository: Path, gate: Gate) -> None:
    write_model(repository, "echo", ECHO)
    write_model(repository, "slow", WAITS_TO_LOAD.format(**gate.paths) + ECHO)
    ours, theirs = pty.openpty()
    words = [
        "serve",
        "--http-port=0",
        "--http-address=127.0.0.1",
        "--grpc-port=0",
        "--metrics-port=0",
        "--dashboard-port=0",
        str(repository),
    ]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": ""}
    process = subprocess.Popen([NAIAD, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    while b"1 of 2 done" not in written:
        written += os.read(ours, 65536)
    gate.wait_until_entered()
    gate.let_through()
    while "┘".encode() not in written:
        written += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    status = process.wait(timeout=60)
    os.close(ours)

    shown = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", written.decode())
    assert status == 0
    assert "waiting for slow" in shown
    assert re.search(r"Model +┃ Version ┃ State ", shown)
    assert re.search(r"echo +│ 1 +│ READY ", shown)


def test_a_cache_that_is_too_small_for_anything_is_a_warning(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO)
    (repository / "echo" / "config.pbtxt").write_text("response_cache { enable: true }")

    server = serve(repository, "--cache-config=local,size=200")

    assert infer(server.url, "echo", 7)[0] == 200
    assert any("cache 'local': 200 bytes" in line for line in server.lines)


def test_servers_of_tests_that_name_one_frontend_run_at_the_same_time(serve: "Serve", repository: Path) -> None:
    write_model(repository, "echo", ECHO)

    servers = [serve(repository, frontends=["http"]) for _ in range(2)]

    assert [infer(server.url, "echo", 1)[0] for server in servers] == [200, 200]
