"""A server with the dashboard, over models of the tests' own."""

import http.client
import json
from contextlib import ExitStack

import pytest

import naiad_dashboard
import naiad_metrics
import naiad_tracing
from naiad import hookimpl
from naiad.options import Option
from naiad_testing import serve
from naiad_testing.backends import FakeBackend
from naiad_testing.loops import coroutine_tests
from naiad_testing.serving import without_frontends

pytest_pyfunc_call = coroutine_tests()


class Running:
    """A server in a thread of its own."""

    def __init__(self, client):
        self.client = client
        self.frontend = client.server.plugins.frontends()["dashboard"]
        self.address = ("127.0.0.1", self.frontend.port)
        self.url = f"http://127.0.0.1:{self.frontend.port}"

    def ask(self, path="/", method="GET", body=None, **headers):
        """The status, headers (names in lower case) and text of the answer."""
        connection = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, headers=names)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
        finally:
            connection.close()

    def events(self, view, count):
        """The names and documents of the first events of a stream."""
        connection = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            connection.request("GET", f"/events/{view}")
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
            assert (answer.getheader("cache-control"), answer.getheader("x-accel-buffering")) == ("no-store", "no")
            events = []
            while len(events) < count:
                line = answer.readline().decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                    events.append((name, json.loads(answer.readline().decode().removeprefix("data: "))))
            return events
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

        def start(*plugins, **options):
            chosen = {"dashboard-port": 0, **options}
            own = [backend, naiad_dashboard, without_frontends(naiad_metrics), naiad_tracing, *plugins]
            return Running(stack.enter_context(serve(models, plugins=own, options=chosen)))

        start.stop = stack.close
        yield start


@pytest.fixture
def server(start_server):
    """A running server."""
    return start_server()


class HttpOptions:
    """The option of the HTTP frontend that restricts APIs, without the frontend."""

    @hookimpl
    def naiad_options(self):
        return [Option("http-restricted-api", (), "restricted", repeatable=True)]


@pytest.fixture
def http_options():
    return HttpOptions()
