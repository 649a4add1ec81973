"""A server with the metrics frontend, over a model of the tests' own."""

import asyncio
import http.client
import inspect
from contextlib import ExitStack

import pytest

import naiad_metrics
from naiad_testing import serve
from naiad_testing.backends import FakeBackend


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


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
    made = FakeBackend()
    yield made
    made.release()


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
