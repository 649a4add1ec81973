"""Disks that are full and pipes without a reader: the server goes on serving what it has."""

import base64
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..fork_server import ForkedProcess, start_forked
from . import models
from .asking import ONE
from .conftest import Start, assert_sound
from .running import LOCAL, PATIENCE, post, until

FAILS = models.ECHO.replace("return x", "raise ValueError('to be logged')")


@contextmanager
def served(command: list[str | Path], port: int, output: int) -> Iterator[ForkedProcess]:
    """A server whose output is not for us to read."""
    process = start_forked(["serve", *LOCAL, f"--http-port={port}", *command], output, os.environ)
    try:
        until(lambda: is_ready(process, port))
        yield process
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as result:
        port: int = result.getsockname()[1]
    return port


def is_ready(process: ForkedProcess, port: int) -> bool:
    assert process.poll() is None
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
            connection.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(12).endswith(b" 200")
    except ConnectionRefusedError:
        return False


def status_of(port: int, model: str) -> int:
    """The status of one request to that model."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(post(f"/v2/models/{model}/infer", ONE, Connection="close"))
        return int(connection.recv(12).split()[1])


@pytest.mark.parametrize(
    ("words", "file"),
    [(("--log-file=/dev/full", "--log-verbose=1"), "/dev/null"), ((), "/dev/full"), ((), "")],
    ids=["log file on a full disk", "output on a full disk", "output that is not read"],
)
def test_output_that_cannot_be_written_stops_nothing(repository: Path, words: tuple[str, ...], file: str) -> None:
    models.write(repository, "fails", FAILS)
    port = free_port()
    streams = [os.open(file, os.O_WRONLY)] if file else [*os.pipe()]

    with served([*words, repository], port, streams[-1]) as process:
        for stream in streams:
            os.close(stream)
        failed = [status_of(port, "fails") for _ in range(20)]
        served_still = status_of(port, "echo")
        process.send_signal(signal.SIGTERM)
        ended = process.wait(PATIENCE)

    assert (failed, served_still, ended) == ([500] * 20, 200, 0)


def test_files_of_loads_are_cleaned_up(start: Start, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    running = start(
        "--model-control-mode=explicit",
        "--load-model=echo",
        "--allow-uploaded-code",
        TMPDIR=str(tmp_path / "temporary"),
    )
    good = base64.b64encode(models.ECHO.encode()).decode()
    bad = base64.b64encode(b"def broken(:").decode()

    statuses = [
        running.load("echo", **{"config": "{}", "file:1/model.py": content}).status
        for content in (good, bad, good, bad)
    ]
    held = len(list((tmp_path / "temporary").iterdir()))
    running.load("echo")
    until(lambda: list((tmp_path / "temporary").iterdir()) == [])
    running.load("echo", **{"config": "{}", "file:1/model.py": good})
    assert_sound(running)
    running.stop()

    assert (statuses, held) == ([200, 400, 200, 400], 1)
    assert list((tmp_path / "temporary").iterdir()) == []
