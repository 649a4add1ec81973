"""The fork server of the tests: its processes are started, written to files, ended and reported like any other."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import naiad

from .fork_server import ForkedProcess, ForkServer, run_forked

ELSEWHERE = ("--http-port=0", "--grpc-port=0", "--metrics-port=0", "--dashboard-port=0")


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def start(server: ForkServer, log: Path, *words: str, **environment: str) -> ForkedProcess:
    with log.open("wb") as output:
        return server.start(words, output.fileno(), {**os.environ, **environment})


def test_each_process_has_its_own_words_output_and_status(server: ForkServer, tmp_path: Path) -> None:
    logs = [tmp_path / "version", tmp_path / "mistake"]

    processes = [start(server, logs[0], "--version"), start(server, logs[1], "srve")]

    assert [process.wait(60) for process in processes] == [0, 2]
    assert [process.poll() for process in processes] == [0, 2]
    assert logs[0].read_text() == f"naiad {naiad.__version__}\n"
    assert "'srve'; did you mean 'serve'?" in logs[1].read_text()


def test_a_command_that_ends_has_its_two_streams_and_its_status() -> None:
    good, bad = run_forked(["--version"]), run_forked(["srve"])

    assert (good.returncode, good.stdout, good.stderr) == (0, f"naiad {naiad.__version__}\n", "")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "'srve'" in bad.stderr


def test_a_process_has_the_environment_and_the_folder_of_its_start(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    status = start(server, tmp_path / "log", "serve", "no-such-folder", NAIAD_LOG_FORMAT="json").wait(60)

    assert status == 1
    assert '"message"' in (tmp_path / "log").read_text()
    assert str(tmp_path / "no-such-folder") in (tmp_path / "log").read_text()


def test_a_process_searches_the_folders_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "naiad_counts-1.0.dist-info").mkdir()
    (tmp_path / "naiad_counts-1.0.dist-info" / "METADATA").write_text("Name: naiad-counts\nVersion: 1.0\n")
    (tmp_path / "naiad_counts-1.0.dist-info" / "entry_points.txt").write_text("[naiad]\ncounts = naiad_counts\n")
    (tmp_path / "naiad_counts.py").touch()

    ran = run_forked(["plugins"], {**os.environ, "PYTHONPATH": f"{tmp_path / 'none'}{os.pathsep}{tmp_path}"})

    assert "counts\tnaiad-counts 1.0" in ran.stdout


def test_a_signal_ends_a_process_and_is_its_status(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    process = start(server, tmp_path / "log", "serve", str(tmp_path / "models"), *ELSEWHERE)

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    status = process.wait(60)
    process.send_signal(signal.SIGTERM)  # does nothing any more

    assert (status, process.poll()) == (-signal.SIGKILL, -signal.SIGKILL)
