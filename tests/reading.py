"""A reader of the documentation: follows a page in an empty folder, pastes its blocks and compares what they print.

A block of code is a file when its first line is `# path`, which is pasted with it. Words after the language say what a
block is:

* `sh install`: what to install. Its packages, and those that they need, are all that the environment has.
* `sh fails`: the commands end with an error, as the page says.
* `text example`, `json example`: what something looks like; no command of the page prints exactly that.
* `python part`, `pbtxt part`, `c part`: a part of a file; its syntax is checked, and what it imports.
* `not-run: reason`: cannot run here; `python -m tests.reading` lists all of these.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
NOT_RUN = "not-run: "
PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002, "dashboard": 8003}
"""The default port of each frontend, which the pages name."""
OWN_PORT = "8005"
"""The port of a frontend that a page has its reader write."""

_FENCE = re.compile(r"^( *)```(\w*)(?: ([^\n]*))?\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
_SERVE = re.compile(r"^(?:taskset [-\w ]+ )?naiad serve(?:[^\n]*\\\n)*[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its text, and the path of the file that it is, "" for none."""

    language: str
    note: str
    text: str
    path: str


def sections_of(page: str) -> list[str]:
    """The headings of a page's sections, for pages whose sections are read each for itself: `frameworks.md#Docker`."""
    return [f"{page}#{heading}" for heading in _SECTION.findall((DOCS / page).read_text())]


def text_of(page: str) -> str:
    """The text of a page, which is named relative to docs/, or of one section of it."""
    name, _, heading = page.partition("#")
    text = (DOCS / name).read_text()
    return _SECTION.split(text)[_SECTION.split(text).index(heading) + 1] if heading else text


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page or of one section of it."""
    blocks = []
    for indent, language, note, indented in _FENCE.findall(text_of(page)):
        text = re.sub(rf"^{indent}", "", indented, flags=re.MULTILINE)
        first = text.partition("\n")[0]
        named = re.fullmatch(r"# ([\w./-]+\.\w+)", first) if language != "sh" else None
        blocks.append(Block(language, note, text, named[1] if named else ""))
    return blocks


def packages_of(page: str) -> list[str]:
    """The requirements that the page has its reader install with pip."""
    commands = [block.text for block in blocks_of(page) if block.note == "install"]
    lines = [line.replace("--find-links dist ", "") for text in commands for line in text.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines if line.startswith("pip install")]
    return [word for line in words for word in line[2:] if not word.startswith("-")]


class Reader:
    """Follows pages in `folder`, in the environment whose commands are in `commands`."""

    def __init__(self, folder: Path, commands: Path, **variables: str) -> None:
        self.folder = folder
        self.server: subprocess.Popen[str] | None = None
        self.ports = {name: free_port() for name in PORTS}
        self.own_port = str(free_port())
        path = os.pathsep.join([str(commands), "/usr/local/bin", "/usr/bin", "/bin"])
        installed = os.pathsep.join([str(folder / "naiad-polynomial" / "src"), str(folder / "site")])
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        own = {"PATH": path, "PYTHONPATH": installed, "PYTHONDONTWRITEBYTECODE": "1"}
        self.environment = {**kept, **own, **variables}

    def follow(self, page: str) -> None:
        """Do what the page says, from its beginning to its end. Fails where something else happens than it says."""
        printed: str | None = None
        for block in blocks_of(page):
            if block.note in ("install", "example", "part") or block.note.startswith(NOT_RUN):
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
        text = re.sub("make serve(?: ARGS=)?", "naiad serve examples/models ", block.text).replace(".venv/bin/", "")
        printed, after = "", 0
        for serve in _SERVE.finditer(text):
            printed += self.run_commands(text[after : serve.start()], block.note == "fails")
            self.serve(serve[0])
            after = serve.end()
        return printed + self.run_commands(text[after:], block.note == "fails")

    def run_commands(self, commands: str, fails: bool) -> str:
        """Run commands that end, and return what they print."""
        if not commands.strip():
            return ""
        done = self.bash(self.adapted(commands))
        assert (done.returncode == 0) is not fails, done.stdout + done.stderr
        return done.stdout

    def adapted(self, text: str) -> str:
        """The commands with our free ports, sockets in the folder, and an installation that needs no network."""
        # of the environment of the tests, in a quarter of the time that pip takes
        uv = shlex.quote(str(Path(sys.executable).with_name("uv")))
        offline = f"{uv} pip install -q --no-cache --no-deps --no-build-isolation --no-index --target site"
        text = text.replace("naiad infer", f"naiad infer --url http://127.0.0.1:{self.ports['http']}")
        text = text.replace("pip install -e", offline).replace("pip install ./", f"{offline} ./")
        text = text.replace("/run/naiad.sock", str(self.folder / "naiad.sock"))
        text = text.replace(OWN_PORT, self.own_port)
        for name, port in PORTS.items():
            text = text.replace(f"localhost:{port}", f"127.0.0.1:{self.ports[name]}")
        return text

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
        text = self.adapted(command).strip()
        options = [f"--{name}-port={port}" for name, port in self.ports.items()]
        if "--http-address=unix:" not in text:
            options.append("--http-address=127.0.0.1")
        log = self.folder / "server.log"
        with log.open("w") as opened:
            self.server = subprocess.Popen(
                ["bash", "-c", f"exec {text} {shlex.join(options)}"],
                cwd=self.folder,
                env=self.environment,
                stdout=opened,
                stderr=subprocess.STDOUT,
                text=True,
            )
        deadline = time.monotonic() + 100
        while "http frontend listens at" not in log.read_text():
            try:
                ended = self.server.wait(0.05)
            except subprocess.TimeoutExpired:  # it still runs, and has no way to call us
                ended = None
            assert ended is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()

    def stop(self) -> None:
        """End the server, which must end well."""
        if self.server is not None:
            self.server.terminate()
            assert self.server.wait(60) == 0, (self.folder / "server.log").read_text()
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
    for page in PAGES:
        for block in blocks_of(page):
            if block.note.startswith(NOT_RUN):
                print(f"{page}: {block.text.splitlines()[0]}\n    {block.note.removeprefix(NOT_RUN)}")


if __name__ == "__main__":
    main()
