"""What several tests of the frontend share: a site over a fake server, and a whole server with a mirror for a model."""

import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

import naiad
import naiad_http
from naiad.backend import BackendTraits, Reply
from naiad.config import DataType, ModelConfig, ModelInput
from naiad.errors import InvalidArgumentError
from naiad.testing import serve
from naiad.types import Response, Tensor
from naiad_http.envelopes import EnvelopeReader
from naiad_http.heads import HeadReader
from naiad_http.infer import Inference
from naiad_http.restrictions import Restrictions
from naiad_http.site import Site


class FakeCall:
    """A request that a test answers when it likes."""

    def __init__(self, request, deliver):
        self.request = request
        self.deliver = deliver
        self.cancelled = False

    def cancel(self):
        self.cancelled = True

    def answer(self, **members):
        """Give every input back as an output."""
        request = self.request
        outputs = {name: Tensor(name, each.datatype, each.shape, each.payload) for name, each in request.inputs.items()}
        self.deliver(Response(request.model_name, 1, request.id, outputs, **members))


class FakeServer:
    """Keeps the requests that are submitted; `at_once` answers them before `submit` returns, `refusal` is raised."""

    def __init__(self):
        self.calls = []
        self.at_once = False
        self.refusal = None

    def submit(self, request, deliver):
        if self.refusal is not None:
            raise self.refusal
        call = FakeCall(request, deliver)
        self.calls.append(call)
        if self.at_once:
            call.answer()
        return call

    def model_config(self, name, version=0):
        return ModelConfig(name=name, input=(ModelInput(name="X", data_type=DataType.TYPE_INT8, dims=(-1,)),))

    def labels(self, name, output, version=0):
        return ()


@pytest.fixture
def fake_server():
    return FakeServer()


@pytest.fixture
def make_site(fake_server):
    """Make a site over the fake server."""

    def make(limit=1_000_000, pattern="", rules=()):
        envelopes = EnvelopeReader(pattern, Restrictions(rules))
        return Site(fake_server.submit, Inference(fake_server, limit), HeadReader(envelopes), limit)

    return make


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
        given = dict(zip(self._outputs, request.inputs.values(), strict=False))
        return Reply({name: tensor.array for name, tensor in given.items()}, parameters)


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


def write_models(root: Path) -> None:
    """A mirror for each datatype, one that batches and has labels, and one for two tensors."""
    for wire in (*WIRES, "BF16", "STRING"):
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


class Running:
    """A server with the HTTP frontend in a thread of its own."""

    def __init__(self, client, mirror):
        self.client = client
        self.gate = mirror.backend.gate
        self.frontend = client.server.plugins.frontends()["http"]
        self.url = f"127.0.0.1:{self.frontend.port}"
        self.address = ("127.0.0.1", self.frontend.port)


@pytest.fixture
def mirror():
    """The plugin of the mirror; its gate opens when the test ends."""
    plugin = MirrorPlugin()
    yield plugin
    plugin.backend.gate.opened.set()


@pytest.fixture
def mirror_models(tmp_path):
    """A model repository for the mirror."""
    write_models(tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture
def start_server(mirror, mirror_models):
    """Start servers over the mirror's models; they stop when the test ends."""
    with ExitStack() as stack:

        def start(**options):
            chosen = {"http-port": 0, "http-address": "127.0.0.1", **options}
            client = stack.enter_context(serve(mirror_models, plugins=[mirror, naiad_http], options=chosen))
            stack.callback(mirror.backend.gate.opened.set)
            return Running(client, mirror)

        yield start


@pytest.fixture
def server(start_server):
    """A running server."""
    return start_server()
