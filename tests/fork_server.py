"""A fork server for tests: it has imported what `naiad serve` imports, and forks a process for each start.

A start in a new interpreter takes 1.4 s of processor time until the server answers, most of it for imports; a forked
one takes 0.3 s. Only the imports differ: the command, its words, the environment, the folder, the output, the signals
and the end are those of a process that was started alone. Variables that Python reads at its start are the fork
server's, except that the folders of PYTHONPATH are searched for what is not imported yet.
"""

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from select import select
from tempfile import TemporaryFile
from typing import Any

NAIAD = Path(sys.executable).with_name("naiad")

_MODULES = (
    *("naiad_cli.main", "naiad_cli.serve", "naiad_cli.serving", "naiad_cli.memory", "naiad_cli.stop_signals"),
    *(f"naiad_{name}.backend" for name in ("caffe2", "custom", "onnx", "openvino", "tensorflow", "tensorrt", "torch")),
    *("naiad_custom.shared_library.backend", "naiad_custom.backend_directory", "naiad_process_workers.kind"),
    *(f"naiad_scheduler_{name}.factory" for name in ("dynamic", "ensemble", "sequence")),
    *("naiad_dashboard.application", "naiad_dashboard.frontend", "naiad_metrics.application", "naiad_metrics.frontend"),
    *("naiad_grpc.frontend", "naiad_grpc.catalogue", "naiad_grpc.server.listener"),
    *("naiad_http.frontend", "naiad_http.application", "naiad_http.assembly", "naiad_http.tls"),
    *("naiad_cache.service", "naiad_cache_local.factory", "naiad_cache_redis.factory", "naiad_metrics.service"),
    *("naiad_explain", "naiad_loop_handoff.kinds", "naiad_model_calls.service", "naiad_rate_limiter.gates"),
    *("naiad_repository_agents.checksum", "naiad_repository_agents.signature", "naiad_shared_memory.regions"),
    *("naiad_store.repository", "naiad_store.scheme", "naiad_tracing.tracer", "naiad_warmup"),
    *("uvloop", "uvicorn.protocols.http.auto", "uvicorn.lifespan.off"),
)
"""What a server without models has imported when it is ready. One that is missing here costs time and nothing else."""

_MOST_BYTES = 1 << 18
"""The longest message that starts a process: its words and its environment."""


class ForkedProcess:
    """A process of the fork server, with what `subprocess.Popen` offers of a process."""

    def __init__(self, pid: int, end: socket.socket) -> None:
        """The fork server sends the exit status to `end`."""
        self.pid = pid
        self.returncode: int | None = None
        self._end = end

    def poll(self) -> int | None:
        """The exit status, or the negative number of the signal that ended it; None while it runs."""
        return self._read(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status. Raises TimeoutExpired after that many seconds."""
        status = self._read(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(["naiad"], timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _read(self, timeout: float | None) -> int | None:
        if self.returncode is None and select([self._end], [], [], timeout)[0]:
            self.returncode = int(self._end.recv(32))
            self._end.close()
        return self.returncode


class ForkServer:
    """The fork server of this process; it starts with the first process that it forks."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, words: Sequence[str | Path], output: int, environment: Mapping[str, str], errors: int | None = None
    ) -> ForkedProcess:
        """Fork a process that runs `naiad` with these words; it writes to `output`, or stderr to `errors`."""
        requests = self._requests or self._launch()
        ours, end = _pair()
        message = {"words": [*map(str, words)], "environment": dict(environment), "folder": str(Path.cwd())}
        with end:
            streams = [output, output if errors is None else errors]
            socket.send_fds(requests, [json.dumps(message).encode()], [*streams, end.fileno()])
        return ForkedProcess(int(ours.recv(32)), ours)

    def close(self) -> None:
        """End it: it must end well, and its imports must have written nothing, such as a warning."""
        if self._requests is not None and self._process is not None:
            self._requests.close()
            written, _ = self._process.communicate(timeout=60)
            assert (self._process.returncode, written) == (0, b"")

    def _launch(self) -> socket.socket:
        self._requests, theirs = _pair()
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                # a process with one thread is forked safely, and numpy's library starts as many as there are processors
                env={**os.environ, "PYTHONWARNINGS": "default", "OPENBLAS_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        return self._requests


def main() -> None:
    """Import what a server imports, and fork. In a forked process, run `naiad`."""
    sys.path[0] = str(NAIAD.parent)
    for name in _MODULES:
        with suppress(ImportError):  # an environment may lack a member
            import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        start = _next_start(requests)
    if start is None:
        return
    os.chdir(start["folder"])
    searched = os.environ.get("PYTHONPATH", "")
    os.environ.clear()
    os.environ.update(start["environment"])
    if (path := os.environ.get("PYTHONPATH", "")) != searched:
        sys.path[1:1] = path.split(os.pathsep)
    sys.argv[1:] = start["words"]
    runpy.run_path(str(NAIAD), run_name="__main__")


def _next_start(requests: socket.socket) -> Any:
    """Fork for each request, and send the exit status of each process; None when no more requests can come.

    Returns in each forked process too: the message with its words, environment and folder.
    """
    running: dict[int, tuple[int, socket.socket]] = {}  # the process and its socket, by the descriptor of the process
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in running:
                    selector.unregister(key.fd)
                    _report_end(key.fd, *running.pop(key.fd))
                    continue
                message, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, 3)
                if not message:
                    return None
                streams, end = descriptors[:2], socket.socket(fileno=descriptors[2])
                if not (pid := os.fork()):
                    end.close()
                    _become(streams, running)
                    return json.loads(message)
                for stream in streams:
                    os.close(stream)
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, end
                selector.register(pidfd, selectors.EVENT_READ)
                end.send(str(pid).encode())


def _become(streams: Sequence[int], others: Mapping[int, tuple[int, socket.socket]]) -> None:
    """In a forked process: take stdout and stderr, and close what belongs to others."""
    for pidfd, (_, end) in others.items():
        os.close(pidfd)
        end.close()
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)


def _report_end(pidfd: int, pid: int, end: socket.socket) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(pidfd)
    with end, suppress(BrokenPipeError):  # a test may have dropped the process
        end.send(str(status).encode())


def _pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


_FORK_SERVER = ForkServer()


def start_forked(words: Sequence[str | Path], output: int, environment: Mapping[str, str]) -> ForkedProcess:
    """Run `naiad` with these words in this environment; it writes both of its streams to the descriptor `output`."""
    return _FORK_SERVER.start(words, output, environment)


def run_forked(
    words: Sequence[str | Path], environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """What `subprocess.run` returns of a command `naiad` with these words, which must end within a minute."""
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        variables = os.environ if environment is None else environment
        process = _FORK_SERVER.start(words, output.fileno(), variables, errors.fileno())
        try:
            status = process.wait(60)
        finally:
            process.kill()
        written = [stream.read() for stream in (output, errors) if stream.seek(0) == 0]
    return subprocess.CompletedProcess([*map(str, words)], status, *written)


def end_fork_server() -> None:
    """End the fork server of this process; every process of it must have ended."""
    _FORK_SERVER.close()


if __name__ == "__main__":
    main()
