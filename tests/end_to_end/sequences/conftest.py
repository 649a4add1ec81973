"""One server for all tests of sequences, which each of them leaves as it was, and clients of every kind."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ..clients.conftest import Serving
from ..clients.driving import KINDS, Driven, connect
from ..conftest import assert_sound, ending_well
from . import sources

_OPTIONS = ("--model-control-mode=explicit", "--load-model=*")


@pytest.fixture(scope="session")
def session_summing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server of the models of `sources`; some tell in the folder `told` beside them what they are told."""
    folder = tmp_path_factory.mktemp("sequences")
    (folder / "models").mkdir()
    (folder / "told").mkdir()
    sources.write_all(folder / "models", folder / "told")
    with ending_well(Serving(folder / "models", folder / "log", *_OPTIONS)) as running:
        yield running


@pytest.fixture
def summing(session_summing: Serving) -> Iterator[Serving]:
    """That server, which every test must leave sound."""
    yield session_summing
    assert_sound(session_summing)


@pytest.fixture
def told(session_summing: Serving) -> Iterator[Path]:
    """The folder where models tell which sequences are over; it is empty before and after."""
    folder = session_summing.repository.parent / "told"
    yield folder
    for path in folder.iterdir():
        path.unlink()


@pytest.fixture
def make_client(summing: Serving) -> Iterator[Callable[..., Driven]]:
    """Make clients of a kind with these options; they are closed with the test."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())

        def make(kind: str, **options: Any) -> Driven:
            client = connect(kind, summing.port, summing.grpc_port, runner, **options)
            stack.callback(client.close)
            return client

        yield make


@pytest.fixture(params=KINDS["client"])
def client(request: pytest.FixtureRequest, make_client: Callable[..., Driven]) -> Driven:
    """A client of each kind."""
    return make_client(request.param)
