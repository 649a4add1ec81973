"""A whole server with the gRPC frontend and a model that gives its input back, and Triton's own client for it."""

from contextlib import ExitStack

import numpy as np
import pytest
import tritonclient.grpc as triton

import naiad_grpc
from naiad.backend import Reply
from naiad_testing import serve
from naiad_testing.backends import FakeBackend

PATIENCE = 30.0


def mirror(batch):
    """OUTPUT is INPUT, and the parameters come back; `fail` raises."""
    replies = []
    for request in batch.requests:
        if "fail" in request.parameters:
            raise RuntimeError(request.parameters["fail"])
        replies.append(Reply({"OUTPUT": request.inputs["INPUT"].array}, dict(request.parameters)))
    return replies


def values_input(*values):
    """INPUT, FP32[n]."""
    tensor = triton.InferInput("INPUT", [len(values)], "FP32")
    tensor.set_data_from_numpy(np.array(values, np.float32))
    return [tensor]


class Running:
    """A server in a thread of its own, and the client library."""

    def __init__(self, serving, backend, stack):
        self.serving = serving
        self.backend = backend
        self.target = serving.server.plugins.frontends()["grpc"].target
        self._stack = stack

    def client(self, url="", **more):
        """Another client, which is closed when the test ends."""
        client = triton.InferenceServerClient(url or self.target, **more)
        self._stack.callback(client.close)
        return client


@pytest.fixture
def backend():
    """The backend of the models; whatever it holds goes on when the test ends."""
    client = FakeBackend(answer=mirror)
    yield client
    client.release()


@pytest.fixture
def models(tmp_path, backend):
    """A repository with `mirror`."""
    backend.write(tmp_path / "models", "mirror")
    return tmp_path / "models"


@pytest.fixture
def start_server(models, backend, transport):
    """Start servers over these models, with `more` plugins, on either transport; they stop when the test ends."""
    with ExitStack() as stack:

        def start(*, more=(), **options):
            chosen = {"grpc-port": 0, "grpc-address": "127.0.0.1", "grpc-transport": transport, **options}
            plugins = [backend, naiad_grpc, *more]
            serving = stack.enter_context(serve(models, plugins=plugins, options=chosen))
            stack.callback(backend.release)
            return Running(serving, backend, stack)

        yield start


@pytest.fixture
def server(start_server):
    """A running server."""
    return start_server()


@pytest.fixture
def client(server):
    """Triton's client of it."""
    return server.client()
