"""What several tests of inference share: a server that answers when a test likes, callers, and messages."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

from naiad.errors import NotFoundError, UnsupportedError
from naiad.types import Response
from naiad_config import ModelConfig, ModelTransactionPolicy
from naiad_grpc.inference import make_inference
from naiad_grpc.messages import message_class
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_shared_memory.regions import SharedMemory
from naiad_tensors.tensors import Tensor
from naiad_testing.tracing import FakeTracing

GRPC_ERRORS = ("triton_grpc_error", "true")
"""The metadata by which a caller asks that its first error ends the stream."""


class FakeCall:
    """A request that a test answers when it likes; it says what its caller did."""

    def __init__(self, request, deliver, streams):
        self.request = request
        self.deliver = deliver
        self.streams = streams
        self.commands = []

    def cancel(self):
        self.commands.append("cancel")

    def pause(self):
        self.commands.append("pause")

    def resume(self):
        self.commands.append("resume")

    def answer(self, **members):
        """Give every input back as an output, three times over."""
        request = self.request
        outputs = {name: Tensor.of(name, tensor.array * 3) for name, tensor in request.inputs.items()}
        self.deliver(Response(request.model_name, 5, request.id, outputs, **members))

    def end(self, **members):
        """Say that the request is over."""
        self.deliver(Response(self.request.model_name, 5, self.request.id, {}, **members))


class FakeServer:
    """Keeps the calls that are submitted. `refusal` is raised; `at_once` answers a call before `submit` returns.

    Models whose names start with "d" are decoupled, those that start with "u" are unknown.
    """

    def __init__(self, **settings):
        self.settings = {"grpc-header-forward-pattern": "", "grpc-max-response-size": 2**31 - 1, **settings}
        self.bytes_in_flight = ByteBudget(1 << 30)
        self.tracing = FakeTracing()
        self.shared_memory = SharedMemory(allowed=True)
        self.calls = []
        self.refusal = None
        self.at_once = None

    def service(self, kind):
        services = {
            "shared-memory": self.shared_memory,
            "tracing": self.tracing,
            "bytes-in-flight": self.bytes_in_flight,
        }
        if kind.name not in services:
            raise UnsupportedError(f"there is no {kind.name}")
        return services[kind.name]

    def submit(self, request, deliver, streams=False):
        if self.refusal is not None:
            raise self.refusal
        call = FakeCall(request, deliver, streams)
        self.calls.append(call)
        if self.at_once is not None:
            self.at_once(call)
        return call

    def model_config(self, name, version=0):
        self._check(name)
        policy = ModelTransactionPolicy(decoupled=True) if name.startswith("d") else None
        return ModelConfig(name=name, model_transaction_policy=policy)

    def model_metadata(self, name, version=0):
        self._check(name)
        return SimpleNamespace(versions=(4, 5))

    def labels(self, name, output, version=0):
        return ()

    def _check(self, name):
        if name.startswith("u"):
            raise NotFoundError(f"unknown model: '{name}'")


class FakeContext:
    """A call's context: `remaining` seconds, and metadata, which may be looked at only where it `may_ask`."""

    def __init__(self, *metadata, remaining=None, may_ask=True):
        self._metadata = metadata
        self._remaining = remaining
        self._may_ask = may_ask

    def time_remaining(self):
        return self._remaining

    def invocation_metadata(self):
        assert self._may_ask, "looking at the metadata costs time and is not needed"
        return self._metadata


@pytest.fixture
def server():
    return FakeServer()


@pytest.fixture
def make_server():
    return FakeServer


@pytest.fixture
def inference(server):
    return make_inference(server)


@pytest.fixture
def context():
    return FakeContext


@pytest.fixture
def stream(inference, context):
    return inference.open_stream(context())


@pytest.fixture
def strict(inference, context):
    """A stream that its first error ends."""
    return inference.open_stream(context(("a", "b"), GRPC_ERRORS))


@pytest.fixture
def ask():
    """The bytes of a request with one input of one number."""

    def make(request_id="7", value=2, model="m", **members):
        message = message_class("ModelInferRequest")(model_name=model, id=request_id, **members)
        message.inputs.add(name="X", datatype="INT32", shape=[1])
        message.raw_input_contents.append(np.array([value], np.int32).tobytes())
        return message.SerializeToString()

    return make


@pytest.fixture
def settled():
    """Lets the tasks that can run do so."""

    async def wait():
        for _ in range(5):
            await asyncio.sleep(0)

    return wait
