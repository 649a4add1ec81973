"""A whole server on a unix socket, asked by curl, stopped, crashed and started again."""

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import Start
from .running import Running, until

CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed")


def status(path: Path) -> str:
    """The status of a health check that curl makes; 000 when nobody answers."""
    command = [str(CURL), "--silent", "--unix-socket", str(path), "--write-out", "%{http_code}"]
    return subprocess.run(
        [*command, "http://localhost/v2/health/ready"], capture_output=True, text=True, check=False
    ).stdout


def listens(running: Running, path: Path) -> bool:
    return f"http frontend listens at unix:{path}" in running.log


def test_curl_asks_and_the_file_goes_with_the_server(start: Start, repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "naiad.sock"
    running = start(f"--http-address=unix:{path}")
    until(lambda: listens(running, path))
    told = status(path)
    running.stop()

    assert repository.exists()
    assert told == "200"
    assert not path.exists()


def test_the_file_of_a_crashed_server_is_replaced(start: Start, repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "naiad.sock"
    crashed = start(f"--http-address=unix:{path}")
    until(lambda: listens(crashed, path))
    crashed.kill()
    left_behind = path.exists()
    running = start(f"--http-address=unix:{path}")
    until(lambda: listens(running, path))

    assert repository.exists()
    assert (left_behind, status(path)) == (True, "200")


def test_a_second_server_is_told_of_the_first(start: Start, repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "naiad.sock"
    running = start(f"--http-address=unix:{path}")
    until(lambda: listens(running, path))
    second = start(f"--http-address=unix:{path}")

    assert repository.exists()
    assert second.exit_status() == 1
    assert f"HTTP cannot listen on unix:{path}: another server listens there" in second.log
    assert status(path) == "200"
