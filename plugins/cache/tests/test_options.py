"""Which cache the options ask for, and what is refused at the start."""

from pathlib import Path
from typing import Any

import pytest

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad_cache.options import ChosenCache, chosen_cache
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache

from .serving import running

NONE: dict[str, Any] = {"cache-config": (), "response-cache-byte-size": 0}


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        ((), None),
        (("local,size=1000",), ChosenCache("local", {"size": "1000"})),
        (("redis,host=h,port=1", "redis,port=2"), ChosenCache("redis", {"host": "h", "port": "2"})),
        (("redis,password=a=b",), ChosenCache("redis", {"password": "a=b"})),
        (("redis",), ChosenCache("redis", {})),
    ],
)
def test_the_settings_of_one_cache_add_up(texts: tuple[str, ...], chosen: ChosenCache | None) -> None:
    assert chosen_cache({**NONE, "cache-config": texts}) == chosen


def test_the_older_option_is_the_local_cache() -> None:
    assert chosen_cache({**NONE, "response-cache-byte-size": 99}) == ChosenCache("local", {"size": "99"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cache-config": ("local,size=1", "redis,host=h")}, "names 2: local, redis; keep one"),
        ({"cache-config": ("local,size=1",), "response-cache-byte-size": 1}, "are both given; keep --cache-config"),
        ({"cache-config": ("size=1",)}, "must begin with a cache's name"),
        ({"cache-config": ("",)}, "must begin with a cache's name"),
        ({"cache-config": ("local,size",)}, "must be CACHE,KEY=VALUE"),
        ({"cache-config": ("local,=1",)}, "must be CACHE,KEY=VALUE"),
    ],
)
def test_what_is_invalid_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        chosen_cache({**NONE, **values})


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(InvalidArgumentError) as error:
        chosen_cache({**NONE, "cache-config": ("redis,password=se,cret",)})

    assert "cret" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fake", "the cache 'fake'"),
        ("local", "It comes with naiad-cache-local: pip install"),
        ("redis", "It comes with naiad-cache-redis: pip install"),
    ],
)
async def test_a_cache_that_is_not_there_ends_the_start_with_what_to_install(
    backend: FakeBackend, tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(NotFoundError, match=message):
        async with running(tmp_path, backend, cache_config=(f"{name},size=1",)):
            pass


async def test_the_chosen_cache_gets_its_settings_and_is_closed_at_the_end(
    backend: FakeBackend, tmp_path: Path
) -> None:
    cache = FakeCache()

    async with running(tmp_path, backend, cache, cache_config=("fake,a=1", "fake,b=2")):
        during = list(cache.events)

    assert (cache.settings, during, cache.events) == ({"a": "1", "b": "2"}, [], ["close"])
