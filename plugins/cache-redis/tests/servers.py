"""A Redis server in a process of its own, that tests start, freeze and end."""

import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import redis


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait for what another thread or process does, which nothing else announces."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, "it did not happen"
        sleep(0.002)


class RedisServer:
    """Nothing of it is written to disk."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        self.port = port or free_port()
        where = () if "--tls-port" in options else ("--port", str(self.port))
        words = ["redis-server", *where, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", *options]
        self._process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def __enter__(self) -> "RedisServer":
        until = monotonic() + 20
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            assert self._process.poll() is None, "the server has ended"
            assert monotonic() < until, "the server does not listen"
            sleep(0.01)

    def __exit__(self, *error: object) -> None:
        self.end()

    def client(self, **options: Any) -> redis.Redis:
        """A connection of the test's own."""
        return redis.Redis(port=self.port, **options)

    def freeze(self) -> None:
        """Let it answer nothing, with all connections open."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
