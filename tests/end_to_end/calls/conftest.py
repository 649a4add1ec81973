"""A server process with models that call each other, one for all tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import ending_well
from ..running import Running
from . import sources


@pytest.fixture(scope="package")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The models of `sources`; others are loaded by request."""
    folder = tmp_path_factory.mktemp("calling")
    sources.write_all(folder / "models")
    words = ("--model-control-mode=explicit", "--load-model=*")
    with ending_well(Running(folder / "models", folder / "log", *words)) as running:
        yield running


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """The repository of a server that a test starts itself, with all models of `sources`."""
    sources.write_all(tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture
def start_calling(models: Path, tmp_path: Path) -> Iterator[Callable[[], Running]]:
    """Start a server on the repository `models`."""
    started: list[Running] = []

    def start() -> Running:
        started.append(Running(models, tmp_path / "log"))
        assert started[-1].port
        return started[-1]

    yield start
    for running in started:
        running.kill()
