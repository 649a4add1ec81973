"""A whole server over TLS, asked by curl and by Triton's client, with certificates that openssl makes."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import gevent.ssl
import numpy as np
import pytest
import tritonclient.http as triton

from .asking import tensor
from .certifying import OPENSSL, write_certificates
from .conftest import Start
from .running import PATIENCE, Running, until

CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(not (CURL and OPENSSL), reason="curl or openssl is not installed")

_LISTENS = re.compile(r"http frontend listens at https://\S+:(\d+)")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca.pem`, and `server.pem` and `client.pem` from there with their keys."""
    return write_certificates(tmp_path_factory.mktemp("certificates"))


def port_of(running: Running) -> int:
    return int(until(lambda: _LISTENS.search(running.log)).group(1))  # type: ignore[union-attr]


def curl(port: int, *words: str | Path) -> tuple[str, str]:
    """Status and body of a health check that curl makes; 000 where there is no answer."""
    command = [str(CURL), "--silent", "--max-time", "30", "--write-out", "%{http_code}", *map(str, words)]
    url = f"https://localhost:{port}/v2"
    done = subprocess.run([*command, url], capture_output=True, text=True, check=False)
    return done.stdout[-3:], done.stdout[:-3]


def own(certificates: Path, *more: str) -> tuple[str, ...]:
    """The words that make a server serve over TLS."""
    pair = (f"--http-server-cert={certificates / 'server.pem'}", f"--http-server-key={certificates / 'server.key'}")
    return (*pair, *more)


def test_curl_trusts_the_server_and_is_answered(start: Start, repository: Path, certificates: Path) -> None:
    running = start(*own(certificates, "--http-use-ssl"))
    port = port_of(running)
    trusting = curl(port, "--cacert", certificates / "ca.pem")
    suspicious = curl(port)
    running.stop()

    assert repository.exists()
    assert (trusting[0], json.loads(trusting[1])["name"]) == ("200", "naiad")
    assert suspicious == ("000", "")


def test_only_clients_with_a_certificate_are_answered(start: Start, repository: Path, certificates: Path) -> None:
    ca = certificates / "ca.pem"
    running = start(*own(certificates, "--http-use-ssl-mutual", f"--http-root-cert={ca}"))
    port = port_of(running)
    shown = ("--cert", certificates / "client.pem", "--key", certificates / "client.key")

    assert repository.exists()
    assert curl(port, "--cacert", ca, *shown)[0] == "200"
    assert curl(port, "--cacert", ca)[0] == "000"


def test_tritons_client_is_answered(start: Start, repository: Path, certificates: Path) -> None:
    running = start(*own(certificates, "--http-use-ssl"))
    trusting = str(certificates / "ca.pem")
    given = tensor("x", np.array([1, 2], np.float32))
    with triton.InferenceServerClient(
        f"localhost:{port_of(running)}",
        ssl=True,
        ssl_context_factory=lambda: gevent.ssl.create_default_context(cafile=trusting),
        network_timeout=PATIENCE,
    ) as client:
        answer = client.infer("echo", [given])
    running.stop()

    assert repository.exists()
    assert answer.as_numpy("output").tolist() == [1, 2]


def test_a_wrong_file_is_told_with_its_option(start: Start, repository: Path, certificates: Path) -> None:
    running = start("--http-use-ssl", f"--http-server-cert={certificates / 'none.pem'}")

    assert repository.exists()
    assert running.exit_status() == 1
    assert f"--http-server-cert: '{certificates / 'none.pem'}' cannot be read" in running.log
