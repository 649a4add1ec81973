"""`naiad serve` as a process of the tests: started, asked, watched, and stopped by a signal."""

import http.client
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, TypeVar

import tritonclient.http as triton

from ..fork_server import start_forked

LOCAL = (
    "--http-address=127.0.0.1",
    "--grpc-address=127.0.0.1",
    "--grpc-port=0",
    "--metrics-port=0",
    "--dashboard-port=0",
)
"""Options that keep a server to this machine, and off the ports of others but for that of HTTP."""

PATIENCE = 60.0
"""Seconds after which something that should happen counts as never happening."""

T = TypeVar("T")
_LISTENS = re.compile(r"http frontend listens at http://\S+:(\d+)")
_GRPC = re.compile(r"grpc frontend listens at \S+:(\d+)")
_OUR_FAULT = re.compile(
    r"unexpected error|never retrieved|never awaited|Exception ignored|Fatal Python|Unhandled|"
    r"Warning: (?!This process \(pid=\d+\) is multi-threaded, use of fork)"  # Python 3.12, of a model that forks
)


def until(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    """The first true value of the condition, which is asked again and again. Fails after that many seconds."""
    deadline = monotonic() + seconds
    while not (value := condition()):
        if monotonic() > deadline:
            raise AssertionError(f"it did not happen within {seconds} s")
        sleep(0.005)
    return value


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The JSON of the body: all of it, or as much as the header says."""
        length = self.headers.get("inference-header-content-length")
        return json.loads(self.body[: int(length)] if length else self.body)

    @property
    def error(self) -> str:
        """What the error says, which is the one thing in the JSON document of a refusal."""
        document = self.document
        assert list(document) == ["error"], document
        message: str = document["error"]
        return message


class Running:
    """A server process with its own repository."""

    def __init__(
        self, repository: Path, log: Path, *words: str | Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start it with these words and these more variables in its environment; it writes both streams to the log."""
        self.repository = repository
        self._log = log
        self._temporary = TemporaryDirectory(prefix="naiad-tests-", ignore_cleanup_errors=True)
        own = {"PYTHONWARNINGS": "default", "TMPDIR": self._temporary.name}
        variables = os.environ | own | dict(environment or {})
        command = ["serve", *LOCAL, "--http-port=0", *words, repository]
        with log.open("wb") as output:
            self._process = start_forked(command, output.fileno(), variables)
        self.pid = self._process.pid

    @property
    def log(self) -> str:
        """What it has said so far, on both streams."""
        return self._log.read_text()

    @property
    def port(self) -> int:
        """Where it listens, as soon as it does."""

        def look() -> re.Match[str] | None:
            if self._process.poll() is not None:
                raise AssertionError(f"it ended with status {self._process.returncode}:\n{self.log}")
            return _LISTENS.search(self.log)

        return int(until(look).group(1))

    @property
    def grpc_port(self) -> int:
        """Where it listens for gRPC, as soon as it does."""
        return int(until(lambda: _GRPC.search(self.log)).group(1))

    @property
    def resident_bytes(self) -> int:
        """How much memory the process has."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    @property
    def url(self) -> str:
        """As the client library wants it."""
        return f"127.0.0.1:{self.port}"

    def client(self, concurrency: int = 1) -> triton.InferenceServerClient:
        """Triton's own client."""
        return triton.InferenceServerClient(
            self.url, concurrency=concurrency, connection_timeout=PATIENCE, network_timeout=PATIENCE
        )

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; a mapping is sent as JSON."""
        content = json.dumps(body).encode() if isinstance(body, Mapping) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, content, dict(headers or {}))
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def infer(self, model: str, *values: float, **more: Any) -> Answer:
        """Ask a model of the input `x`, FP32 of one dimension, in JSON; `more` goes into the request."""
        fields = {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": list(values)}
        headers = more.pop("headers", None)
        return self.ask("POST", f"/v2/models/{model}/infer", {"inputs": [fields], **more}, headers)

    def read_all(self) -> None:
        """Return when the server has read everything that was sent to it before: it reads what comes in that order."""
        for _ in range(2):
            assert self.ask("GET", "/v2/health/live").status == 200

    def load(self, model: str, **parameters: str) -> Answer:
        return self.ask("POST", f"/v2/repository/models/{model}/load", {"parameters": parameters})

    def unload(self, model: str) -> Answer:
        return self.ask("POST", f"/v2/repository/models/{model}/unload")

    def ready(self) -> bool:
        return self.ask("GET", "/v2/health/ready").status == 200

    def entries(self, model: str) -> list[dict[str, str]]:
        """What the index says of a model."""
        listed = self.ask("POST", "/v2/repository/index").document
        return [entry for entry in listed if entry["name"] == model]

    def statistics(self, model: str) -> dict[str, Any]:
        """The counters of a model's one version."""
        (counted,) = self.ask("GET", f"/v2/models/{model}/stats").document["model_stats"]
        return dict(counted)

    def counted(self, model: str, what: str) -> int:
        """How many requests to a model went so: `success`, `fail`, …"""
        return int(self.statistics(model)["inference_stats"][what]["count"])

    @contextmanager
    def connected(self) -> Iterator["Wire"]:
        """A plain connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as opened:
            wire = Wire(opened)
            try:
                yield wire
            finally:
                wire.file.close()

    @contextmanager
    def connections(self, count: int) -> Iterator[list["Wire"]]:
        """So many plain connections."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.connected()) for _ in range(count)]

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def exit_status(self) -> int:
        """Wait for its end."""
        return self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Stop it by SIGTERM; it must end well, and its log must have no unexpected line."""
        self.terminate()
        assert self.exit_status() == 0, self.log
        assert _OUR_FAULT.findall(self.log) == [], self.log

    def kill(self) -> None:
        """End it however it is; once more does no harm."""
        self._process.kill()
        self._process.wait()
        self._temporary.cleanup()


def refusal(answer: Answer | None, status: int = 400) -> str:
    """What an answer that must be a refusal says."""
    assert answer is not None
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json"), answer.body
    assert "Traceback" not in answer.error
    return answer.error


def post(path: str, body: bytes | Mapping[str, Any], **headers: str | int) -> bytes:
    """The bytes of a request; a mapping is sent as JSON. `Content_Length` and others override what is right."""
    content = json.dumps(body).encode() if isinstance(body, Mapping) else body
    lines = {"Host": "localhost", "Content_Length": len(content)} | headers
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + content


class Wire:
    """A plain socket to the server, on which a test says what it likes."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        self.file = opened.makefile("rb")

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def say_no_more(self) -> None:
        """Close our half of the connection."""
        self.socket.shutdown(socket.SHUT_WR)

    def answer(self) -> Answer | None:
        """The next answer; None when the server has closed the connection."""
        line = self.file.readline()
        if not line:
            return None
        headers = dict(line.decode().strip().split(": ", 1) for line in iter(self.file.readline, b"\r\n"))
        headers = {name.lower(): value for name, value in headers.items()}
        return Answer(int(line.split()[1]), headers, self.file.read(int(headers.get("content-length", 0))))
