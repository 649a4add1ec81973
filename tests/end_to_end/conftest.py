"""Servers for the end-to-end tests: one a module for what leaves it as it was, and others to start as a test likes."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from tritonclient.utils import shared_memory as shm

from . import models
from .gates import Gate
from .running import Running, Wire, until
from .sharing import descriptors

Start = Callable[..., Running]
_Running = TypeVar("_Running", bound=Running)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a sound model of each kind."""
    repository = tmp_path_factory.mktemp("written")
    models.write_all(repository)
    return repository


@pytest.fixture(scope="module")
def shared(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of all sound models, one a module; models are loaded and unloaded by request."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copytree(written, folder / "models")
    words = ("--model-control-mode=explicit", "--load-model=*", "--http-header-forward-pattern=^x-")
    with ending_well(Running(folder / "models", folder / "log", *words)) as running:
        yield running


@contextmanager
def ending_well(running: _Running) -> Iterator[_Running]:
    """The server once it listens; it must stop when the block has ended, and is killed when that has failed."""
    try:
        assert running.port
        yield running
        running.stop()
    finally:
        running.kill()


@pytest.fixture
def server(shared: Running) -> Iterator[Running]:
    """The module's server, which every test must leave alive, ready and serving."""
    yield shared
    assert_sound(shared)


@pytest.fixture
def wire(server: Running) -> Iterator[Wire]:
    """A plain connection to the module's server."""
    with server.connected() as opened:
        yield opened


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers on a repository of the test's own (`tmp_path / "models"`) with these words and variables."""
    started: list[Running] = []

    def run(*words: str | Path, **environment: str) -> Running:
        log = tmp_path / f"log-{len(started)}"
        started.append(Running(tmp_path / "models", log, *words, environment=environment))
        return started[-1]

    yield run
    for running in started:
        running.kill()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate that is shut until the test opens it, or ends."""
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.open()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The repository of the servers that `start` starts; it has the model `echo`."""
    folder = tmp_path / "models"
    models.write(folder, "echo", models.ECHO)
    return folder


@pytest.fixture(scope="module")
def sharing_server(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that lets clients register shared memory."""
    running = Running(written, tmp_path_factory.mktemp("server") / "log", "--allow-client-shm=true")
    try:
        assert running.port
        yield running
        running.stop()
    finally:
        running.kill()


@pytest.fixture
def sharing(sharing_server: Running) -> Iterator[Running]:
    """That server, which every test must leave sound, without a region and without a descriptor more."""
    before = descriptors(sharing_server)
    yield sharing_server
    with sharing_server.client() as client:
        client.unregister_system_shared_memory()
    assert_sound(sharing_server)
    assert until(lambda: descriptors(sharing_server) <= before)


@pytest.fixture
def make_region() -> Iterator[Callable[[int], Any]]:
    """Make segments of so many bytes with the client library; they are gone with the test."""
    with ExitStack() as stack:

        def make(byte_size: int) -> Any:
            name = f"naiad_test_{uuid4().hex}"
            gate = shm.create_shared_memory_region(name, f"/{name}", byte_size)
            stack.callback(shm.destroy_shared_memory_region, gate)
            return gate

        yield make


def assert_sound(running: Running) -> None:
    """It is live and ready, and answers a good request well."""
    assert running.ask("GET", "/v2/health/live").status == 200
    assert running.ready(), running.log
    answer = running.infer("echo", 1.5, -2)
    assert (answer.status, answer.document["outputs"][0]["data"]) == (200, [1.5, -2.0])
