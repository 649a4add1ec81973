"""A reader of the documentation: follows a page in an empty folder, pastes its blocks and compares what they print.

A block of code is a file when its first line is `# path`, which is pasted with it. Words after the language say what a
block is:

* `sh install`: what to install. Its packages, and those that they need, are all that the environment has.
* `sh fails`: the commands end with an error, as the page says.
* `not-run: reason`: cannot run here; `python -m tests.reading` lists all of these.
"""

import os
import re
import shlex
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

DOCS = Path(__file__).parents[1] / "docs"
_FENCE = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = "not-run: "


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its text, and the path of the file that it is, "" for none."""

    language: str
    note: str
    text: str
    path: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page of docs/ that have a language."""
    blocks = []
    for language, note, text in _FENCE.findall((DOCS / page).read_text()):
        first = text.partition("\n")[0]
        named = re.fullmatch(r"# ([\w./-]+\.\w+)", first) if language != "sh" else None
        blocks.append(Block(language, note, text, named[1] if named else ""))
    return blocks


def packages_of(page: str) -> list[str]:
    """The requirements that the page has its reader install with pip."""
    commands = [block.text for block in blocks_of(page) if block.note == "install"]
    lines = [line.replace("--find-links dist ", "") for text in commands for line in text.splitlines()]
    words = [shlex.split(line) for line in lines if line.startswith("pip install")]
    return [word for line in words for word in line[2:] if not word.startswith("-")]


class Reader:
    """Follows a page in `folder`, in the environment whose commands are in `commands`."""

    def __init__(self, folder: Path, commands: Path) -> None:
        self.folder = folder
        self.server: subprocess.Popen[str] | None = None
        self.port = free_port()
        path = os.pathsep.join([str(commands), "/usr/local/bin", "/usr/bin", "/bin"])
        installed = os.pathsep.join([str(folder / "naiad-polynomial" / "src"), str(folder / "site")])
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        self.environment = {**kept, "PATH": path, "PYTHONPATH": installed, "PYTHONDONTWRITEBYTECODE": "1"}

    def follow(self, page: str) -> None:
        """Do what the page says, from its beginning to its end. Fails where something else happens than it says."""
        printed: str | None = None
        for block in blocks_of(page):
            if block.note == "install" or block.note.startswith(NOT_RUN):
                continue
            if block.path:
                self.write(block)
            elif block.language == "sh":
                printed = self.run(block)
            elif block.language in ("text", "json"):
                assert printed is not None, f"{page}: nothing printed '{block.text}'"
                assert_printed(printed, block.text)

    def write(self, block: Block) -> None:
        """Write the file that a block is, with its first line."""
        target = self.folder / block.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text)

    def run(self, block: Block) -> str:
        """Run the commands of a block and return what they print; `naiad serve` goes on until the next one."""
        text = block.text.replace("make serve", "naiad serve examples/models").replace(".venv/bin/", "")
        commands, serve, rest = text.partition("naiad serve")
        printed = ""
        if commands.strip():
            done = self.bash(self.adapted(commands))
            assert (done.returncode == 0) is (block.note != "fails"), done.stdout + done.stderr
            printed = done.stdout
        if serve:
            self.serve(serve + rest)
        return printed

    def adapted(self, commands: str) -> str:
        """The commands with our free port, and an installation that needs no network."""
        offline = "pip install -q --no-deps --no-build-isolation --no-index --target site"
        return (
            commands.replace("localhost:8000", f"127.0.0.1:{self.port}")
            .replace("naiad infer", f"naiad infer --url http://127.0.0.1:{self.port}")
            .replace("pip install -e", offline)
        )

    def bash(self, commands: str) -> "subprocess.CompletedProcess[str]":
        """Run commands, as a reader who stops at the first that fails."""
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
        """Start the server of a command in place of the earlier one, and wait until it is ready."""
        self.stop()
        ports = [
            "--http-port",
            str(self.port),
            "--http-address",
            "127.0.0.1",
            "--grpc-port",
            "0",
            "--metrics-port",
            "0",
        ]
        log = self.folder / "server.log"
        with log.open("w") as opened:
            self.server = subprocess.Popen(
                ["bash", "-c", f"exec {command.strip()} {shlex.join([*ports, '--dashboard-port', '0'])}"],
                cwd=self.folder,
                env=self.environment,
                stdout=opened,
                stderr=subprocess.STDOUT,
                text=True,
            )
        deadline = time.monotonic() + 60
        while not self.is_ready():
            try:
                ended = self.server.wait(0.1)
            except subprocess.TimeoutExpired:  # it still runs, and has no way to call us
                ended = None
            assert ended is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()

    def is_ready(self) -> bool:
        """Whether the server is."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/health/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def stop(self) -> None:
        """End the server, which must end well."""
        if self.server is not None:
            self.server.terminate()
            assert self.server.wait(30) == 0, (self.folder / "server.log").read_text()
            self.server = None


def free_port() -> int:
    """A port that was free just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def assert_printed(printed: str, expected: str) -> None:
    """Compare, where `...` in the page stands for anything and blanks at the ends count for nothing."""
    pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, printed.strip(), re.DOTALL), f"printed:\n{printed}\nexpected:\n{expected}"


def main() -> None:
    """Print every block that is not run, and why."""
    for path in sorted(DOCS.glob("*.md")):
        for block in blocks_of(path.name):
            if block.note.startswith(NOT_RUN):
                print(f"{path.name}: {block.text.splitlines()[0]}\n    {block.note.removeprefix(NOT_RUN)}")


if __name__ == "__main__":
    main()
