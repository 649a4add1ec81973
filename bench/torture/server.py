"""The server under attack: a `naiad serve` process with limits, measured from outside through /proc."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.servers import Ports, serve_command
from bench.torture.wire import ask

MODELS = Path(__file__).resolve().parent / "models"
BENCH_MODELS = MODELS.parent.parent / "models"
GIB = 1 << 30
_READY_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Setup:
    """How a server is started: its models, further options, limits of its process, and what its output goes to.

    `prepare` gets the model repository before the start and may add to it; it returns further options.
    """

    models: Sequence[str] = ("add_sub",)
    options: Sequence[str] = ()
    address_space: int = 6 * GIB
    open_files: int = 0
    unread_log: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], Sequence[str]] = lambda _repository: ()


@dataclass(slots=True)
class Target:
    """A running server: its ports, its process, its repository and its log."""

    ports: Ports
    process: subprocess.Popen[bytes]
    repository: Path
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def megabytes(self) -> float:
        """Resident memory now; 0 once the process has ended."""
        return self._status("VmRSS:") / 1e3

    def peak_megabytes(self) -> float:
        """The most resident memory since `forget_peak`; 0 once the process has ended."""
        return self._status("VmHWM:") / 1e3

    def forget_peak(self) -> None:
        """Let the kernel count the peak anew (proc(5), clear_refs)."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def settled_megabytes(self, most: float, within: float = 6.0) -> float:
        """Resident memory when it is well below `most`, or below it after half of the time, or when the time is up."""
        started = time.monotonic()
        while (size := self.megabytes()) > most - 50 and time.monotonic() - started < within / 2:
            time.sleep(0.1)
        while (size := self.megabytes()) > most and time.monotonic() - started < within:
            time.sleep(0.1)
        return size

    def descriptors(self) -> int:
        """How many files and sockets the process has open; 0 once it has ended."""
        with contextlib.suppress(OSError):
            return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())
        return 0

    def threads(self) -> int:
        """How many threads the process has; 0 once it has ended."""
        with contextlib.suppress(OSError):
            return sum(1 for _ in Path(f"/proc/{self.pid}/task").iterdir())
        return 0

    def log_bytes(self) -> int:
        return self.log.stat().st_size

    def stop_seconds(self, within: float) -> float:
        """Send SIGTERM: the seconds until the process ended, or `within` where it had to be killed."""
        started = time.monotonic()
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return within
        return time.monotonic() - started

    def _status(self, key: str) -> float:
        """A size of /proc/PID/status, in kB."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith(key):
                    return int(line.split()[1]) * 1.024
        return 0.0


@contextlib.contextmanager
def serve(naiad: Path, setup: Setup) -> Iterator[Target]:
    """A server that is ready. Whatever happens in the block, its process has ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        repository = Path(folder) / "models"
        _copy_models(setup.models, repository)
        options = [*setup.options, *setup.prepare(repository)]
        ports = Ports.free()
        log = Path(folder) / "server.log"
        with log.open("wb") as out:
            process = _start(naiad, repository, ports, options, setup, subprocess.PIPE if setup.unread_log else out)
            target = Target(ports, process, repository, log)
            try:
                _wait_until_started(target)
                yield target
            finally:
                process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


def _copy_models(names: Sequence[str], repository: Path) -> None:
    repository.mkdir()
    for name in names:
        source = MODELS / name if (MODELS / name).exists() else BENCH_MODELS / name
        shutil.copytree(source, repository / name, ignore=shutil.ignore_patterns("__pycache__"))


def _start(
    naiad: Path, repository: Path, ports: Ports, options: Sequence[str], setup: Setup, output: object
) -> subprocess.Popen[bytes]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (setup.address_space, setup.address_space))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if setup.open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (setup.open_files, setup.open_files))

    return subprocess.Popen(
        serve_command(naiad, repository, ports, options),
        stdout=output,  # type: ignore[arg-type]
        stderr=subprocess.STDOUT,
        env={**os.environ, **setup.environment},
        preexec_fn=limit,
    )


def _wait_until_started(target: Target) -> None:
    """Wait until the models of the start are loaded, ready or not: a server that still loads them answers 503."""
    deadline = time.monotonic() + _READY_WITHIN
    while time.monotonic() < deadline:
        if not target.alive():
            raise RuntimeError(f"the server ended with {target.process.returncode}: {target.log.read_text()[-2000:]}")
        with contextlib.suppress(OSError, EOFError):
            if ask(target.ports.http, "GET", "/v2/health/ready", timeout=5).status in (200, 400):
                return
        time.sleep(0.05)
    raise RuntimeError(f"the server had not started within {_READY_WITHIN:g} s: {target.log.read_text()[-2000:]}")
