"""What several tests of the frontend share: a fake server, and a site over it."""

import pytest

from naiad.config import DataType, ModelConfig, ModelInput
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
