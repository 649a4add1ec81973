"""docs/custom.md and docs/tutorial.md are run as they stand: files are written, commands run, outputs compared."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import pytest

DOCS = Path(__file__).parents[3] / "docs"
VENV = Path(sys.executable).parent


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the word after it, its text, and the file that it stands for."""

    language: str
    note: str
    text: str
    path: str


def blocks_of(page: str) -> list[Block]:
    results = []
    for language, note, text in re.findall(
        r"^```(\w+) ?(\w*)\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE
    ):
        first, _, rest = text.partition("\n")
        named = re.fullmatch(r"# ([\w./-]+\.\w+)", first)
        results.append(Block(language, note, rest if named else text, named[1] if named else ""))
    return results


class Reader:
    """Follows a page in an empty folder, as its reader would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: subprocess.Popen[str] | None = None
        self.port = free_port()
        path = os.pathsep.join([str(VENV), os.environ["PATH"]])
        installed = os.pathsep.join([str(folder / "naiad-polynomial" / "src"), str(folder / "site")])
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": installed}

    def write(self, block: Block) -> None:
        target = self.folder / block.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text)

    def run(self, block: Block) -> str:
        """Run the commands of a block and give what they printed; `naiad serve` goes on until the next one."""
        commands, serve, rest = block.text.partition("naiad serve")
        printed = ""
        if commands.strip():
            done = self.bash(self.here(commands))
            assert (done.returncode == 0) is (block.note != "fails"), done.stdout + done.stderr
            printed = done.stdout
        if serve:
            self.serve(serve + rest)
        return printed

    def here(self, commands: str) -> str:
        """The commands with our free port, and an installation that needs no network."""
        offline = "pip install -q --no-deps --no-build-isolation --no-index --target site"
        return (
            commands.replace("localhost:8000", f"127.0.0.1:{self.port}")
            .replace("naiad infer", f"naiad infer --url http://127.0.0.1:{self.port}")
            .replace("pip install -e", offline)
        )

    def bash(self, commands: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-ec", commands],
            cwd=self.folder,
            env=self.environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=100,
        )

    def serve(self, command: str) -> None:
        self.stop()
        words = [*command.split(), "--http-port", str(self.port), "--http-address", "127.0.0.1", "--grpc-port", "0"]
        log = (self.folder / "server.log").open("w")
        with log:
            self.server = subprocess.Popen(
                words, cwd=self.folder, env=self.environment, stdout=log, stderr=subprocess.STDOUT, text=True
            )
        deadline = time.monotonic() + 60
        while not self.is_ready():
            with pytest.raises(subprocess.TimeoutExpired):  # it still runs, and has no way to call us
                self.server.wait(0.1)
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/health/ready", timeout=5) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False

    def stop(self) -> None:
        if self.server is not None:
            self.server.terminate()
            assert self.server.wait(30) == 0, (self.folder / "server.log").read_text()
            self.server = None


@pytest.fixture
def reader(tmp_path):
    reader = Reader(tmp_path)
    yield reader
    reader.stop()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def assert_printed(printed: str, expected: str) -> None:
    """Compare, where `...` in the page stands for anything and spaces at the ends of lines count for nothing."""
    pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, printed.strip()), f"printed:\n{printed}\nexpected:\n{expected}"


def test_the_models_of_the_page_pass_its_tests(reader):
    for block in blocks_of("custom.md"):
        if block.path:
            reader.write(block)
    (reader.folder / "models/scale/1/factor.json").write_text("2")

    (reader.folder / "test_scale.py").write_text(
        "def test_scale(naiad_serve):\n"
        "    assert naiad_serve('models/scale').infer(x=[[3] * 16])['output'][0, 0] == 6\n"
    )

    done = reader.bash("naiad check models && pytest -q test_add.py test_scale.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 models, 0 with problems" in done.stdout
    assert "7 passed" in done.stdout
