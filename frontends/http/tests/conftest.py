"""What several tests of the frontend share: a fake server, and a site over it."""

from types import SimpleNamespace

import pytest

from naiad.types import Response
from naiad_config import DataType, ModelConfig, ModelInput
from naiad_http.connection_context import ConnectionContext
from naiad_http.heads import HeadReader
from naiad_http.infer import Inference
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_http.route_table import RouteTable
from naiad_http.routes.operations import Operation
from naiad_shared_memory.regions import SharedMemory
from naiad_tensors.tensors import Tensor
from naiad_testing.tracing import FakeTracing

OPERATIONS = [
    Operation("GET", "/v2/logging", "logging", "read", None),
    Operation("POST", "/v2/logging", "logging", "write", None),
]


class FakeCall:
    """A request that a test answers when it likes; `streams` is what its submitter asked for."""

    def __init__(self, request, deliver, streams):
        self.request = request
        self.streams = streams
        self.cancelled = self.paused = False
        self._deliver = deliver

    def cancel(self):
        self.cancelled = True

    def pause(self):
        self.paused = True

    def resume(self):
        self.paused = False

    def deliver(self, outcome):
        """Hand an outcome over, as a server does: not to a caller that has gone."""
        if not self.cancelled:
            self._deliver(outcome)

    def send(self, *values, final=False):
        """Send responses with these strings as the output TEXT; with `final` the last one is the final one."""
        for index, value in enumerate(values):
            outputs = {"TEXT": Tensor.of("TEXT", [value])}
            last = final and index == len(values) - 1
            self.deliver(Response(self.request.model_name, 1, self.request.id, outputs, final=last))

    def end(self):
        """Say that all is sent."""
        self.deliver(Response(self.request.model_name, 1, self.request.id, {}))

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
        self.shared_memory = SharedMemory(allowed=True)
        self.tracing = FakeTracing()
        self.metrics = SimpleNamespace(collect_made_by_models=list)

    def service(self, kind):
        services = {"shared-memory": self.shared_memory, "tracing": self.tracing, "metrics": self.metrics}
        return services[kind.name]

    def submit(self, request, deliver, streams=False):
        if self.refusal is not None:
            raise self.refusal
        call = FakeCall(request, deliver, streams)
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
def make_context(fake_server):
    """Make a site over the fake server."""

    def make(limit=1_000_000, pattern="", rules=(), **limits):
        restrictions = Restrictions(rules)
        heads = HeadReader(RequestHeadReader(pattern, restrictions), RouteTable(OPERATIONS, restrictions))
        return ConnectionContext(fake_server.submit, Inference(fake_server, limit), heads, limit, **limits)

    return make
