"""What fails in an unexpected way fails alone: lookups are answered, and insertions return their bytes."""

import weakref
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import numpy as np
import pytest

from naiad.types import Response
from naiad_cache_redis import cache as under_test
from naiad_cache_redis.cache import RedisCache
from naiad_cache_redis.codec import encode
from naiad_kit.caches import CachedResponse
from naiad_tensors.tensors import Tensor

from .servers import until


class FakeRedis:
    """Redis in memory; `exchanges` are the keys of each MGET, and an exchange waits while `open` is not set."""

    def __init__(self) -> None:
        self.values: dict[bytes, Any] = {}
        self.exchanges: list[list[bytes]] = []
        self.open = Event()
        self.open.set()

    def ping(self) -> bool:
        return True

    def mget(self, keys: Sequence[bytes]) -> list[Any]:
        assert self.open.wait(20)
        self.exchanges.append(list(keys))
        return [self.values.get(key) for key in keys]

    def pipeline(self, transaction: bool) -> "FakePipeline":
        return FakePipeline(self)

    def close(self) -> None:
        pass


class FakePipeline:
    def __init__(self, server: FakeRedis) -> None:
        self.server = server
        self.command_stack: list[tuple[bytes, bytes]] = []

    def set(self, key: bytes, value: bytes, ex: int | None) -> None:
        self.command_stack.append((key, value))

    def execute(self, raise_on_error: bool) -> list[bool]:
        self.server.values.update(self.command_stack)
        return [True] * len(self.command_stack)


class Lookups:
    """Callbacks of lookups; `complete` waits until the last of them was called."""

    def __init__(self, count: int) -> None:
        self.answers: list[CachedResponse | None] = []
        self._count = count
        self._all = Event()

    def deliver(self, response: CachedResponse | None) -> None:
        self.answers.append(response)
        if len(self.answers) == self._count:
            self._all.set()

    def complete(self) -> list[CachedResponse | None]:
        assert self._all.wait(20)
        return self.answers


def response_of(elements: int = 1) -> CachedResponse:
    return CachedResponse.of(Response("m", 1, "", {"o": Tensor.of("o", np.ones(elements, np.float32))}))


@pytest.fixture
def server() -> FakeRedis:
    return FakeRedis()


@pytest.fixture
def cache(server: FakeRedis) -> Iterator[RedisCache]:
    cache = RedisCache(server, "fake")  # type: ignore[arg-type]
    yield cache
    server.open.set()
    cache.close()


def test_a_value_that_cannot_be_decoded_is_a_miss_and_the_other_lookups_are_answered(
    server: FakeRedis, cache: RedisCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.values = {b"naiad:bad": b"bad", b"naiad:good": encode(response_of())}
    decode = under_test.decode

    def decode_without_memory(value: bytes) -> CachedResponse:
        if value == b"bad":
            raise MemoryError
        return decode(value)

    monkeypatch.setattr(under_test, "decode", decode_without_memory)
    lookups = Lookups(4)

    for key in (b"bad", b"good", b"bad", b"good"):
        cache.lookup(key, lookups.deliver)

    assert [answer is not None for answer in lookups.complete()] == [False, True, False, True]
    assert (cache.report().hits, cache.report().failures) == (2, 2)


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_a_callback_that_raises_keeps_no_other_lookup_from_its_answer(
    cache: RedisCache, error: type[BaseException]
) -> None:
    lookups = Lookups(2)

    def fail(_response: CachedResponse | None) -> None:
        raise error

    for callback in (lookups.deliver, fail, fail, lookups.deliver):
        cache.lookup(b"key", callback)

    assert lookups.complete() == [None, None]


def test_an_answer_with_too_few_values_fails_all_its_lookups(server: FakeRedis, cache: RedisCache) -> None:
    server.mget = lambda keys: []  # type: ignore[method-assign]
    lookups = Lookups(3)

    for _ in range(3):
        cache.lookup(b"key", lookups.deliver)

    assert lookups.complete() == [None] * 3
    assert cache.report().failures == 3


def test_responses_that_cannot_be_encoded_leave_room_for_others(
    server: FakeRedis, cache: RedisCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = response_of(), response_of()
    bad.byte_size = 40 << 20  # two of them pass the limit of what may wait

    def encode_without_memory(response: CachedResponse) -> bytes:
        if response is bad:
            raise MemoryError
        return encode(response)

    monkeypatch.setattr(under_test, "encode", encode_without_memory)

    for failures in (1, 2, 3):
        cache.insert(b"bad", bad)
        until(lambda: cache.report().failures == failures)  # noqa: B023 - called before the next turn
    cache.insert(b"good", good)
    until(lambda: cache.report().insertions)

    assert list(server.values) == [b"naiad:good"]


def test_large_values_are_not_fetched_together(server: FakeRedis, cache: RedisCache) -> None:
    size = under_test._BYTES_AT_ONCE // 4
    large = bytes(size)
    server.values = {b"naiad:large": large}
    first, others = Lookups(1), Lookups(40)
    cache.lookup(b"large", first.deliver)
    first.complete()
    server.open.clear()

    for _ in range(40):
        cache.lookup(b"large", others.deliver)
    server.open.set()
    others.complete()

    assert max(map(len, server.exchanges)) <= 4


def test_the_first_exchanges_are_small_until_the_size_of_values_is_known(server: FakeRedis, cache: RedisCache) -> None:
    server.open.clear()
    lookups = Lookups(300)

    for _ in range(300):
        cache.lookup(b"missing", lookups.deliver)
    server.open.set()
    lookups.complete()

    sizes = [len(keys) for keys in server.exchanges]
    assert all(size <= 2**index for index, size in enumerate(sizes))
    assert max(sizes) >= 32


def test_a_response_that_was_sent_is_not_kept(server: FakeRedis, cache: RedisCache) -> None:
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    alive = weakref.ref(array)
    gone = Event()
    weakref.finalize(array, gone.set)
    cache.insert(b"key", CachedResponse.over((Tensor.of("o", array),)))

    del array

    assert gone.wait(20)
    assert alive() is None
