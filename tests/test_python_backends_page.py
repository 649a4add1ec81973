"""The page about backends in Python: its files and commands work as a reader pastes them, in threads and isolated."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .end_to_end.running import PATIENCE, until
from .written import ask

PAGE = (Path(__file__).parents[1] / "docs" / "python_backends.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|sh|json)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [text for kind, text in BLOCKS if kind == "sh"]
PRINTED = [json.loads(text) for kind, text in BLOCKS if kind == "json"]
BIN = Path(sys.executable).parent


def run(command: str, folder: Path) -> str:
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return ran.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything is written and run that the page has before it serves."""
    folder = tmp_path_factory.mktemp("page")
    for kind, text in BLOCKS:
        if kind == "python":
            path = folder / text.partition("\n")[0].removeprefix("# ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    run(COMMANDS[0], folder)
    return folder


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[int]:
    """Run the command of the page that serves, on a port that is free; yields the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [BIN / "naiad", *shlex.split(COMMANDS[1])[1:], *words]
    command += ["--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)

    def ready() -> bool:
        assert server.poll() is None, (folder / "log").read_text()
        with suppress(OSError):
            return ask(f"http://127.0.0.1:{port}/v2/health/ready")[0] == 200
        return False

    try:
        until(ready, 4 * PATIENCE)
        yield port
    finally:
        server.terminate()
        server.wait(PATIENCE)


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_the_commands_of_the_page_print_what_it_says(folder: Path, isolation: str) -> None:
    with serving(folder, f"--isolation={isolation}") as port:
        printed = [
            json.loads(run(each.replace("localhost:8000", f"127.0.0.1:{port}"), folder)) for each in COMMANDS[2:]
        ]

    assert printed == PRINTED
