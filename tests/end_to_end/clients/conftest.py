"""One server for all tests of the client library, which each of them leaves as it was, and clients of every kind."""

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import assert_sound
from ..running import Running
from ..serving import making_clients, serving_sources
from . import sources
from .driving import KINDS, Driven

_HERE = Path(__file__).parent
_OPTIONS = (
    "--grpc-address=127.0.0.1",
    "--grpc-port=0",
    "--metrics-port=0",
    "--dashboard-port=0",
    "--model-control-mode=explicit",
    "--load-model=*",
    "--allow-client-shm=true",
    "--http-header-forward-pattern=^(authorization|x-.*)$",
    "--grpc-header-forward-pattern=^(authorization|x-.*)$",
)


@pytest.fixture(scope="session")
def session_serving(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of all sound models and of those of `sources`."""
    folder = tmp_path_factory.mktemp("clients")
    shutil.copytree(written, folder / "models")
    with serving_sources(folder, sources.write_all, *_OPTIONS) as running:
        yield running


@pytest.fixture
def serving(session_serving: Running) -> Iterator[Running]:
    """That server, which every test must leave sound."""
    yield session_serving
    assert_sound(session_serving)


@pytest.fixture
def make_client(serving: Running) -> Iterator[Callable[..., Driven]]:
    """Make clients of a kind with these options; they are closed with the test."""
    with making_clients(serving) as make:
        yield make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The asynchronous HTTP client leaves answers unread, whose connections may complain when they are collected."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.filterwarnings("ignore:Unclosed:ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Nothing is left to be collected, and to complain, in the tests of others."""
    yield
    gc.collect()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every fixture of `KINDS` gives the test a client of each of its kinds."""
    for name, kinds in KINDS.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, kinds, indirect=True)


def _client(request: pytest.FixtureRequest, make_client: Callable[..., Driven]) -> Driven:
    return make_client(request.param)


client = pytest.fixture(_client)
http_client = pytest.fixture(_client)
