"""One server for all tests of sequences, which each of them leaves as it was, and clients of every kind."""

from collections.abc import Callable, Iterator

import pytest

from ..clients.driving import KINDS, Driven
from ..conftest import assert_sound
from ..running import Running
from ..serving import making_clients, serving_sources
from . import sources


@pytest.fixture(scope="session")
def session_summing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the models of `sources`; some write a file into the folder `events` for each end of a sequence."""
    with serving_sources(tmp_path_factory.mktemp("sequences"), sources.write_all) as running:
        yield running


@pytest.fixture
def summing(session_summing: Running) -> Iterator[Running]:
    """That server, which every test must leave sound."""
    yield session_summing
    assert_sound(session_summing)


@pytest.fixture
def make_client(summing: Running) -> Iterator[Callable[..., Driven]]:
    """Make clients of a kind with these options; they are closed with the test."""
    with making_clients(summing) as make:
        yield make


@pytest.fixture(params=KINDS["client"])
def client(request: pytest.FixtureRequest, make_client: Callable[..., Driven]) -> Driven:
    """A client of each kind."""
    return make_client(request.param)
