"""How a server starts with a cache, and what it says where naiad-cache is missing."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import naiad_cache
from naiad import Server
from naiad.cache import CacheFactory
from naiad.errors import InvalidArgumentError, PluginError
from naiad.hookspecs import hookimpl
from naiad_kit.caches import Cache
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import request

from .caching import CACHED


async def test_a_server_with_a_wrong_option_is_stopped_and_can_be_stopped_again(tmp_path: Path) -> None:
    server = Server(model_repository=[tmp_path], plugins=[naiad_cache], options={"cache-config": ("=nonsense",)})

    with pytest.raises(InvalidArgumentError, match="--cache-config"):
        await server.start()

    assert not server.live()
    assert not server.ready().ready
    assert await server.stop()


async def test_a_cache_that_cannot_be_opened_ends_the_start_with_its_reason(tmp_path: Path) -> None:
    class Broken:
        name = "broken"

        def open(self, settings: Mapping[str, str]) -> Cache:
            raise OSError("no such host")

        @hookimpl
        def naiad_caches(self) -> Sequence[CacheFactory]:
            return [self]

    server = Server(model_repository=[tmp_path], plugins=[naiad_cache, Broken()], options={"cache-config": ("broken",)})

    with pytest.raises(PluginError, match="cache 'broken' cannot be opened: OSError: no such host"):
        await server.start()

    assert not server.live()
    assert await server.stop()


async def test_without_the_plugin_its_options_are_unknown(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="unknown option 'cache-config'"):
        Server(model_repository=[tmp_path], plugins=[FakeCache()], options={"cache-config": ("fake",)})


async def test_without_the_plugin_a_model_that_asks_for_a_cache_is_served_and_the_log_says_what_to_install(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.write(tmp_path, "m", CACHED)

    async with Server(model_repository=[tmp_path], plugins=[backend, FakeCache()]) as server:
        responses = [await server.infer(request("m", 1)) for _ in range(2)]

    assert [each.outputs["OUTPUT"].array.tolist() for each in responses] == [[1], [1]]
    assert len(backend.batches) == 2
    advice = "It comes with naiad-cache: pip install 'naiad-cache'."
    assert "model 'm' " in caplog.text
    assert advice in caplog.text
