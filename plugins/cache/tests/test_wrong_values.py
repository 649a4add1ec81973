"""A cache plugin that gives something else than responses: each such value is a miss, and no request waits for ever."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from naiad_kit.caches import CachedResponse
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import off_the_loop, request
from naiad_testing.loops import until

from .caching import caching, values

Deliver = Callable[[Any], None]
WRONG = [b"pickled", object(), CachedResponse((None,), {}, 0), CachedResponse((), 7, 0)]  # type: ignore[arg-type]


class WrongCache(FakeCache):
    """Answers with `value`, at once, or `later` when `answer_all` is called."""

    def __init__(self, value: object, later: bool) -> None:
        super().__init__()
        self._value = value
        self._later = later
        self._waiting: list[Deliver] = []

    def lookup(self, key: bytes, deliver: Deliver) -> None:
        if self._later:
            self._waiting.append(deliver)
        else:
            deliver(self._value)

    def answer_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each(self._value)


@pytest.mark.parametrize("value", WRONG)
async def test_a_wrong_value_that_comes_at_once_is_a_miss(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    async with caching(tmp_path, backend, WrongCache(value, later=False)) as server:
        assert [values(await server.infer(request("m", number))) for number in (1, 2)] == [[1], [2]]
        (counted,) = server.statistics("m")

    assert caplog.text.count("cache 'fake' gave a wrong value for model 'm'") == 1
    assert (counted.cache_hit.count, counted.cache_miss.count) == (0, 2)


@pytest.mark.parametrize("value", WRONG)
async def test_wrong_values_that_come_from_a_thread_are_misses_of_all_who_wait(
    backend: FakeBackend, tmp_path: Path, value: object
) -> None:
    cache = WrongCache(value, later=True)

    async with caching(tmp_path, backend, cache) as server:
        delivered: list[Any] = []
        for number in range(3):
            server.submit(request("m", number), delivered.append)
        thread = threading.Thread(target=cache.answer_all)
        thread.start()
        await off_the_loop(thread.join)
        await until(lambda: len(delivered) == 3)

    assert sorted(values(response) for response in delivered) == [[0], [1], [2]]


async def test_a_cache_that_would_exit_the_process_is_a_miss(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()
    cache.failure = SystemExit(3)  # type: ignore[assignment]

    async with caching(tmp_path, backend, cache) as server:
        assert values(await server.infer(request("m", 1))) == [1]
        cache.failure = None
