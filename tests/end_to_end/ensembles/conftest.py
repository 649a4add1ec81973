"""One server for all tests of ensembles, which each of them leaves as it was, and clients of every kind."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ..clients.conftest import Serving
from ..clients.driving import KINDS, Driven, connect
from ..conftest import assert_sound, ending_well
from . import sources

_OPTIONS = ("--model-control-mode=explicit", "--load-model=*")


@pytest.fixture(scope="session")
def session_joining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server of the models and ensembles of `sources`."""
    folder = tmp_path_factory.mktemp("ensembles")
    (folder / "models").mkdir()
    (folder / "told").mkdir()
    sources.write_all(folder / "models", folder / "told")
    with ending_well(Serving(folder / "models", folder / "log", *_OPTIONS)) as running:
        yield running


@pytest.fixture
def joining(session_joining: Serving) -> Iterator[Serving]:
    """That server, which every test must leave sound."""
    yield session_joining
    assert_sound(session_joining)


@pytest.fixture
def make_client(joining: Serving) -> Iterator[Callable[..., Driven]]:
    """Make clients of a kind with these options; they are closed with the test."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())

        def make(kind: str, **options: Any) -> Driven:
            client = connect(kind, joining.port, joining.grpc_port, runner, **options)
            stack.callback(client.close)
            return client

        yield make


@pytest.fixture(params=KINDS["client"])
def client(request: pytest.FixtureRequest, make_client: Callable[..., Driven]) -> Driven:
    """A client of each kind."""
    return make_client(request.param)
