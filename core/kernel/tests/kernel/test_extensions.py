"""The protocol extensions that a server names: those of plugins only where these are installed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from naiad import Server
from naiad.errors import UnsupportedError
from naiad.extend import Service
from naiad.hookspecs import hookimpl
from naiad.options import Settings
from naiad_kit.shared_memory import SharedMemoryApi, shared_memory_of

REGIONS = {"system_shared_memory", "cuda_shared_memory"}


class Regions(SharedMemoryApi):  # type: ignore[misc]  # only its kind counts
    """A plugin with a service for shared memory."""

    extensions = ("system_shared_memory", "cuda_shared_memory", "abacus")

    @hookimpl
    def naiad_services(self, settings: Settings) -> Sequence[Service]:
        return [self]

    async def start(self, server: Any) -> None:
        return None

    async def stop(self, seconds: float) -> None:
        return None


def test_shared_memory_is_an_extension_where_its_plugin_is_installed(tmp_path: Path) -> None:
    without = Server(model_repository=[tmp_path], plugins=[])
    having = Server(model_repository=[tmp_path], plugins=[Regions()])

    assert REGIONS.isdisjoint(without.metadata().extensions)
    assert set(having.metadata().extensions) > REGIONS | {"abacus"}
    assert "sequence" not in without.metadata().extensions


def test_a_server_without_shared_memory_says_what_to_install_each_time_it_is_needed(tmp_path: Path) -> None:
    shared_memory = shared_memory_of(Server(model_repository=[tmp_path], plugins=[]))

    for _ in range(2):
        with pytest.raises(UnsupportedError, match="It comes with naiad-shared-memory: pip install"):
            shared_memory()


def test_a_server_with_shared_memory_gives_it_to_frontends(tmp_path: Path) -> None:
    regions = Regions()

    assert shared_memory_of(Server(model_repository=[tmp_path], plugins=[regions]))() is regions
