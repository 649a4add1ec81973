"""The start of `naiad serve`: its ports are open and tell how far it is before the models are loaded."""

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
import tritonclient.grpc as triton
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .written import ECHO, WAITS_TO_LOAD, Gate, ask, infer, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

LEAVES_A_MARK = """
from pathlib import Path

Path({mark!r}).write_text("the model was imported")
"""


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def live_addresses(server: "ServerProcess") -> dict[str, str]:
    """Where its frontends listen while the models load: by name, without scheme."""
    listed = server.wait_for('live while the models load: (.*)"').group(1)
    return {name: re.sub(r"^\w+://", "", url) for name, url in (each.split(" ") for each in listed.split(", "))}


def grpc_health(channel: grpc.Channel) -> int:
    status: int = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()).status
    return status


def test_a_server_is_live_and_says_how_far_it_is_while_its_models_load(
    serve: "Serve", repository: Path, gate: Gate
) -> None:
    write_model(repository, "echo", ECHO)
    write_model(repository, "slow", WAITS_TO_LOAD.format(**gate.paths) + ECHO)
    server = serve(repository)
    addresses = live_addresses(server)
    url = f"http://{addresses['http']}"

    gate.wait_until_entered()
    server.wait_for("model 'echo' version 1 is READY")
    with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(f"{url}/v2/health/ready"):
        pass
    with refused.value as answer:
        reason, retry_after = answer.read().decode(), answer.headers["Retry-After"]
    live, quick, slow, unknown = (
        ask(f"{url}/v2/health/live")[0],
        infer(url, "echo", 7)[0],
        infer(url, "slow", 7),
        infer(url, "ghost", 7)[0],
    )
    with grpc.insecure_channel(addresses["grpc"]) as channel, triton.InferenceServerClient(addresses["grpc"]) as client:
        over_grpc = [client.is_server_live(), client.is_server_ready(), grpc_health(channel)]
        gate.let_through()
        server.wait_for("http frontend listens at")
        over_grpc += [client.is_server_ready(), grpc_health(channel)]

    assert (refused.value.code, retry_after) == (503, "1")
    assert reason == '{"error":"the server is STARTING, loading models: 1 of 2"}'
    assert (live, quick, slow[0], unknown) == (200, 200, 503, 404)
    assert slow[1]["error"].endswith(": LOADING")
    assert over_grpc == [True, False, health_pb2.HealthCheckResponse.NOT_SERVING, True, 1]
    assert (ask(f"{url}/v2/health/ready")[0], infer(url, "slow", 7)[0]) == (200, 200)


def test_metrics_and_dashboard_answer_while_the_models_load(serve: "Serve", repository: Path, gate: Gate) -> None:
    write_model(repository, "slow", WAITS_TO_LOAD.format(**gate.paths) + ECHO)
    server = serve(repository)
    addresses = live_addresses(server)

    gate.wait_until_entered()
    with urllib.request.urlopen(f"http://{addresses['metrics']}") as answer:
        metrics = answer.read().decode()
    with urllib.request.urlopen(f"http://{addresses['dashboard']}") as answer:
        page = answer.read().decode()
    gate.let_through()
    server.wait_for("listens at")

    assert "naiad_" in metrics
    assert "the server is STARTING, loading models: 0 of 1" in page


@pytest.mark.parametrize("option", ["--http-port", "--grpc-port", "--metrics-port"])
def test_a_port_in_use_is_noticed_before_any_model_is_loaded(
    serve: "Serve", repository: Path, tmp_path: Path, option: str
) -> None:
    mark = tmp_path / "mark"
    write_model(repository, "echo", LEAVES_A_MARK.format(mark=str(mark)) + ECHO)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = serve(repository, f"{option}={taken.getsockname()[1]}")
        status = server.exit_status()

    assert status == 1
    assert option in server.lines[-1]
    assert not mark.exists()


def test_a_model_that_fails_at_start_closes_the_ports_that_were_open_and_ends_the_server(
    serve: "Serve", repository: Path, gate: Gate
) -> None:
    write_model(repository, "broken", WAITS_TO_LOAD.format(**gate.paths) + "import no_such_module")
    server = serve(repository)
    addresses = live_addresses(server)

    gate.wait_until_entered()
    live = ask(f"http://{addresses['http']}/v2/health/live")[0]
    gate.let_through()
    status = server.exit_status()

    assert (live, status) == (200, 1)
    assert "failed to load" in "\n".join(server.lines)
    for name in ("http", "grpc", "metrics", "dashboard"):
        host, port = addresses[name].split("/")[0].split(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))
