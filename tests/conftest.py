"""Real server processes for tests that cross distributions."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from .fork_server import NAIAD, ForkedProcess, end_fork_server, start_forked

FRONTENDS = ("http", "grpc", "metrics", "dashboard")


LONG = (
    "test_containerfile.py",
    "test_examples.py",
    "test_isolation.py",
    "test_pages_that_run.py",
    "test_python_backends_page.py",
    "test_wheels.py",
)
"""Files with tests of ten seconds and more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the tests of LONG before the others of this folder: one that begins last keeps one processor alone."""
    ours = [at for at, item in enumerate(items) if item.nodeid.startswith("tests/")]
    ordered = sorted((items[at] for at in ours), key=lambda item: item.path.name not in LONG)
    for at, item in zip(ours, ordered, strict=True):
        items[at] = item


def pytest_unconfigure() -> None:
    """End the fork server; no process of it is left."""
    end_fork_server()


class ServerProcess:
    """A running `naiad serve`; its lines of both streams in the order in which they came.

    What it writes into its folder for temporary files is gone with it: one that is killed leaves something there.
    """

    def __init__(self, command: Sequence[str | Path], is_forked: bool = False) -> None:
        """Start a program with its words; if `is_forked`, `naiad` by the fork server."""
        self._temporary = TemporaryDirectory(prefix="naiad-tests-", ignore_cleanup_errors=True)
        self.lines: list[str] = []
        self._coming: Queue[str | None] = Queue()
        reading, writing = os.pipe()
        self._process: subprocess.Popen[bytes] | ForkedProcess
        self._output = os.fdopen(reading, encoding="utf-8")
        try:
            environment = {**os.environ, "TMPDIR": self._temporary.name}
            if is_forked:
                self._process = start_forked(command[1:], writing, environment)
            else:
                self._process = subprocess.Popen(command, stdout=writing, stderr=writing, env=environment)
        finally:
            os.close(writing)
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._output:
            self._coming.put(line.rstrip("\n"))
        self._coming.put(None)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The match of the first line from here on that the pattern is found in."""
        while (line := self._coming.get(timeout=60)) is not None:
            self.lines.append(line)
            match = re.search(pattern, line)
            if match:
                return match
        message = "\n".join(self.lines)
        raise AssertionError(f"it ended with status {self._process.wait()} and no line with {pattern!r}:\n{message}")

    @property
    def url(self) -> str:
        """Where it listens, as soon as it does."""
        port = self.wait_for(r"http frontend listens at \S+:(\d+)").group(1)
        return f"http://127.0.0.1:{port}"

    def children(self) -> list[Path]:
        """The folders in /proc of the processes that it has started; a thread may end while it is asked for its own."""
        pids: list[str] = []
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            with suppress(FileNotFoundError):
                pids += (task / "children").read_text().split()
        return [Path("/proc") / pid for pid in pids]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def exit_status(self) -> int:
        """Wait for its end; the remaining lines are in `lines` then."""
        status = self._process.wait(timeout=60)
        self._reader.join()
        while (line := self._coming.get_nowait()) is not None:
            self.lines.append(line)
        return status

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._output.close()
        self._temporary.cleanup()


@pytest.fixture
def serve() -> Iterator[Callable[..., ServerProcess]]:
    """Start `naiad serve` with these words; it is ended with the test. See `serving`."""
    with serving() as start:
        yield start


@contextmanager
def serving() -> Iterator[Callable[..., ServerProcess]]:
    """Start `naiad serve` with these words; it is ended with the block.

    Its frontends, those that are named or all of this workspace, listen on free ports of this machine. The others of
    this workspace are off: each would listen on its default port, and a server that does not get one of its ports
    stops, and answers 503 to requests on the others. Another environment has no
    frontends but those named. `is_new` starts it in a new interpreter, as a user does.
    """
    started: list[ServerProcess] = []

    def start(
        *words: str | Path, naiad: Path = NAIAD, frontends: Iterable[str] = FRONTENDS, is_new: bool = False
    ) -> ServerProcess:
        named = tuple(frontends)
        options = [word for name in named for word in (f"--{name}-address=127.0.0.1", f"--{name}-port=0")]
        if naiad == NAIAD:
            options += [f"--allow-{name}=false" for name in FRONTENDS if name not in named]
        started.append(ServerProcess([naiad, "serve", *options, *words], is_forked=naiad == NAIAD and not is_new))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.end()
