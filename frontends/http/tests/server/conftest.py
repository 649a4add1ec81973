"""A whole server with the HTTP frontend and a mirror for a model, and ways to talk to it."""

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvloop

import naiad
import naiad_http
import naiad_shared_memory
import naiad_tracing
from naiad.backend import BackendTraits, Reply
from naiad.errors import InvalidArgumentError
from naiad_testing import serve


class MirrorInstance:
    """Gives inputs back: `X` as `X`, or as `Y` where the model has one; its parameters say what else it does."""

    def __init__(self, config, gate):
        self._outputs = [output.name for output in config.output]
        self._gate = gate

    def execute(self, batch):
        return [self._reply(request) for request in batch.requests]

    def close(self):
        pass

    def _reply(self, request):
        parameters = dict(request.parameters)
        if "fail" in parameters:
            raise RuntimeError(parameters["fail"])
        if "refuse" in parameters:
            return InvalidArgumentError(parameters["refuse"])
        if "wait" in parameters:
            self._gate.entered.set()
            assert self._gate.opened.wait(30)
        outputs = dict(zip(self._outputs, request.inputs.values(), strict=False))
        return Reply({name: tensor.array for name, tensor in outputs.items()}, parameters)


class MirrorBackend:
    """A backend whose models give their inputs back. `gate` lets a test hold the requests that ask to wait."""

    traits = BackendTraits(name="mirror", files={"mirror": ""})

    def __init__(self):
        self.gate = SimpleNamespace(entered=threading.Event(), opened=threading.Event())

    def complete(self, context):
        return context.config

    def load(self, context):
        if "broken" in context.config.parameters:
            raise InvalidArgumentError("the mirror is broken")
        make = lambda placement: MirrorInstance(context.config, self.gate)  # noqa: E731
        return SimpleNamespace(instantiate=make, close=lambda: None)


class MirrorPlugin:
    """The plugin of the mirror."""

    def __init__(self):
        self.backend = MirrorBackend()

    @naiad.hookimpl
    def naiad_backends(self):
        return [self.backend]


WIRES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]


def write_model(root: Path, name: str, config: str) -> None:
    """A model folder for the mirror."""
    (root / name / "1").mkdir(parents=True)
    (root / name / "1" / "mirror").touch()
    (root / name / "config.pbtxt").write_text(config)


def tensor_config(kind: str, dims: str) -> str:
    """One input X and one output Y of that datatype."""
    return f"""
    input [{{ name: "X" data_type: TYPE_{kind} dims: [{dims}] }}]
    output [{{ name: "Y" data_type: TYPE_{kind} dims: [{dims}] }}]
    """


def write_models(root: Path, datatypes: Iterable[str]) -> None:
    """A mirror for each of the datatypes, and one for two tensors that batches and has labels."""
    for wire in datatypes:
        write_model(root, f"mirror_{wire.lower()}", 'backend: "mirror"' + tensor_config(wire, "-1"))
    write_model(
        root,
        "add_sub",
        """
        backend: "mirror" max_batch_size: 8
        input [{ name: "A" data_type: TYPE_FP32 dims: [4] }, { name: "B" data_type: TYPE_FP32 dims: [4] }]
        output [{ name: "SUM" data_type: TYPE_FP32 dims: [4] label_filename: "labels.txt" },
                { name: "DIFF" data_type: TYPE_FP32 dims: [4] }]
        """,
    )
    (root / "add_sub" / "labels.txt").write_text("zero\none\ntwo\n")


class Wire:
    """A plain socket to the server."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=20)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, content):
        self.socket.sendall(content)

    def answer(self):
        """The next answer: status, headers, body; None at the end of the connection."""
        line = self.file.readline()
        if not line:
            return None
        headers = dict(line.decode().strip().lower().split(": ", 1) for line in iter(self.file.readline, b"\r\n"))
        return int(line.split()[1]), headers, self.file.read(int(headers.get("content-length", 0)))


class Running:
    """A server with the HTTP frontend in a thread of its own."""

    def __init__(self, client, mirror):
        self.client = client
        self.gate = mirror.backend.gate
        self.frontend = client.server.plugins.frontends()["http"]
        self.url = f"127.0.0.1:{self.frontend.port}"
        self.address = ("127.0.0.1", self.frontend.port)

    def connect(self):
        """A plain connection."""
        return Wire(self.address)

    def ask(self, method, path, body=None, headers=()):
        """The status, headers (names in lower case) and body of the answer to one request."""
        connection = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()


@pytest.fixture
def mirror():
    """The plugin of the mirror; its gate opens when the test ends."""
    plugin = MirrorPlugin()
    yield plugin
    plugin.backend.gate.opened.set()


@pytest.fixture
def mirror_models(tmp_path):
    """A model repository for the mirror, of the datatypes that tests with a server of their own send."""
    write_models(tmp_path / "models", ["FP32", "INT32", "INT8", "UINT8", "STRING"])
    return tmp_path / "models"


@pytest.fixture
def start_server(mirror, mirror_models):
    """Start servers over the mirror's models, with the plugins `beside`; they stop when the test ends."""
    with ExitStack() as stack:

        def start(*, beside=(naiad_shared_memory,), **options):
            chosen = {"http-port": 0, "http-address": "127.0.0.1", **options}
            plugins = [mirror, naiad_http, naiad_tracing, *beside]
            client = stack.enter_context(serve(mirror_models, plugins=plugins, options=chosen))
            stack.callback(mirror.backend.gate.opened.set)
            return Running(client, mirror)

        yield start


@pytest.fixture
def server(start_server):
    """A running server."""
    return start_server()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """A running server for the tests of a module, each of which leaves it as it was."""
    plugin, models = MirrorPlugin(), tmp_path_factory.mktemp("models")
    write_models(models, [*WIRES, "BF16", "STRING"])
    plugins = [plugin, naiad_http, naiad_tracing, naiad_shared_memory]
    with serve(models, plugins=plugins, options={"http-port": 0, "http-address": "127.0.0.1"}) as client:
        yield Running(client, plugin)


@pytest.fixture
def wire(server):
    """A plain connection to the running server."""
    with server.connect() as opened:
        yield opened


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine on a loop of each kind."""

    def run(main):
        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(asyncio.wait_for(main, 110))

    return run
