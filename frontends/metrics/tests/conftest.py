"""A server with the metrics frontend, over a model of the tests' own."""

import http.client
from contextlib import ExitStack

import pytest

import naiad_metrics
from naiad_testing import serve
from naiad_testing.backends import FakeBackend
from naiad_testing.loops import coroutine_tests

pytest_pyfunc_call = coroutine_tests()


class Running:
    """A server in a thread of its own."""

    def __init__(self, client):
        self.client = client
        self.frontend = client.server.plugins.frontends()["metrics"]
        self.address = ("127.0.0.1", self.frontend.port)

    def ask(self, method="GET", path="/metrics", **headers):
        """The status, headers (names in lower case) and body of the answer."""
        connection = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()


@pytest.fixture
def backend():
    """The backend of the models; what it holds is released when the test ends."""
    backend = FakeBackend()
    yield backend
    backend.release()


@pytest.fixture
def models(tmp_path, backend):
    """A repository with the model `m`."""
    backend.write(tmp_path / "models", "m")
    return tmp_path / "models"


@pytest.fixture
def start_server(models, backend):
    """Start servers over these models; they stop when the test ends."""
    with ExitStack() as stack:

        def start(**options):
            chosen = {"metrics-port": 0, "metrics-address": "127.0.0.1", **options}
            return Running(stack.enter_context(serve(models, plugins=[backend, naiad_metrics], options=chosen)))

        yield start


@pytest.fixture
def server(start_server):
    """A running server."""
    return start_server()
