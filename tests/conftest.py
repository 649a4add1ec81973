"""Real server processes for tests that cross distributions."""

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

NAIAD = Path(sys.executable).with_name("naiad")
FRONTENDS = ("http", "grpc", "metrics", "dashboard")


def pytest_collection_finish() -> None:
    """Have later garbage collections skip the objects of 13,000 collected tests, which take each of them 0.5 s."""
    gc.collect()
    gc.freeze()


class ServerProcess:
    """A running `naiad serve`; its lines of both streams in the order in which they came.

    What it writes into its folder for temporary files is gone with it: one that is killed leaves something there.
    """

    def __init__(self, command: list[str | Path]) -> None:
        self._temporary = TemporaryDirectory(prefix="naiad-tests-", ignore_cleanup_errors=True)
        environment = {**os.environ, "TMPDIR": self._temporary.name}
        self.lines: list[str] = []
        self._coming: Queue[str | None] = Queue()
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
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
        if self._process.stdout:
            self._process.stdout.close()
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
    frontends but those named.
    """
    started: list[ServerProcess] = []

    def start(*words: str | Path, naiad: Path = NAIAD, frontends: Iterable[str] = FRONTENDS) -> ServerProcess:
        named = tuple(frontends)
        options = [word for name in named for word in (f"--{name}-address=127.0.0.1", f"--{name}-port=0")]
        if naiad == NAIAD:
            options += [f"--allow-{name}=false" for name in FRONTENDS if name not in named]
        started.append(ServerProcess([naiad, "serve", *options, *words]))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.end()
