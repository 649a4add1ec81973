"""The cache in memory against its contract, and against a model of what it should hold."""

import tracemalloc
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naiad_cache_local
from naiad.errors import InvalidArgumentError
from naiad.types import Response
from naiad_cache_local.cache import LocalCache
from naiad_kit.caches import CachedResponse
from naiad_tensors.tensors import Tensor
from naiad_testing.caches import check_cache


def of_size(byte_size: int) -> CachedResponse:
    return CachedResponse((), {}, byte_size)


def answer(values: int) -> CachedResponse:
    return CachedResponse.of(Response("m", 1, "", {"o": Tensor.of("o", np.zeros(values, np.float32))}))


def looked_up(cache: LocalCache, key: bytes) -> CachedResponse | None:
    answers: list[CachedResponse | None] = []
    cache.lookup(key, answers.append)
    (result,) = answers
    return result


def test_the_contract_of_a_cache_holds() -> None:
    check_cache(lambda: LocalCache(1 << 30))


def test_the_plugin_offers_the_cache() -> None:
    (factory,) = naiad_cache_local.naiad_caches()

    cache = factory.open({"size": "4096"})

    assert (factory.name, cache.shared, cache.largest, cache.report().capacity) == ("local", False, 4096, 4096)


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({}, "give it a size in bytes, as in --cache-config local,size=1048576"),
        ({"size": "1GB"}, "'1GB' is not a size in bytes"),
        ({"size": "0"}, "the size must be greater than 0, not 0"),
        ({"size": "-1"}, "the size must be greater than 0, not -1"),
        ({"bytes": "4096"}, "cache 'local' has no setting 'bytes'; its settings are size"),
    ],
)
def test_settings_that_are_invalid_are_refused(given_settings: dict[str, str], message: str) -> None:
    (factory,) = naiad_cache_local.naiad_caches()

    with pytest.raises(InvalidArgumentError, match=message):
        factory.open(given_settings)


def test_a_cache_that_is_too_small_for_anything_is_opened_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    (factory,) = naiad_cache_local.naiad_caches()

    cache = factory.open({"size": "200"})

    assert cache.report().capacity == 200
    assert "cache 'local': 200 bytes hold hardly any response; give it 1024 at least" in caplog.text


def test_what_was_asked_for_longest_ago_makes_room() -> None:
    cache = LocalCache(30)
    for key in (b"a", b"b", b"c"):
        cache.insert(key, of_size(10))
    looked_up(cache, b"a")

    cache.insert(b"d", of_size(10))

    assert [key for key in (b"a", b"b", b"c", b"d") if looked_up(cache, key)] == [b"a", b"c", b"d"]
    assert (cache.report().evictions, cache.report().byte_size) == (1, 30)


def test_what_is_larger_than_the_cache_is_not_kept_and_drops_nothing() -> None:
    cache = LocalCache(30)
    cache.insert(b"a", of_size(10))

    cache.insert(b"b", of_size(31))

    assert (looked_up(cache, b"a"), looked_up(cache, b"b")) == (of_size(10), None)
    assert (cache.report().failures, cache.report().entries) == (1, 1)


def test_the_size_counts_what_python_takes_beside_the_content() -> None:
    small, large = answer(1), answer(1001)

    assert large.byte_size - small.byte_size == 4000
    assert 500 < small.byte_size < 1500


@pytest.mark.parametrize("kind", ["numbers", "texts", "parameters"])
def test_a_full_cache_takes_no_more_memory_than_it_was_given(kind: str) -> None:
    texts = np.array([[b"%d" % number for number in range(1000, 1008)]], dtype=object)
    output = Tensor.of("o", texts if kind == "texts" else np.zeros((1, 4), np.float32))
    parameters = {"a": "some text", "b": 1.5} if kind == "parameters" else {}
    cache, number = LocalCache(200_000), 0

    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    while not cache.report().evictions:
        number += 1
        cache.insert(number.to_bytes(32, "big"), CachedResponse.of(Response("m", 1, "", {"o": output}, parameters)))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert 100_000 < taken <= 200_000


KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"])
STEPS = st.lists(
    st.one_of(st.tuples(st.just("lookup"), KEYS, st.just(0)), st.tuples(st.just("insert"), KEYS, st.integers(1, 60)))
)


@given(st.integers(10, 100), STEPS)
@settings(max_examples=200)
def test_it_holds_what_a_plain_model_holds(capacity: int, steps: list[tuple[str, bytes, int]]) -> None:
    cache, held = LocalCache(capacity), OrderedDict[bytes, int]()
    evictions = 0

    for step, key, byte_size in steps:
        if step == "lookup":
            cached = looked_up(cache, key)
            assert (cached.byte_size if cached is not None else None) == held.get(key)
            if key in held:
                held.move_to_end(key)
        else:
            cache.insert(key, of_size(byte_size))
            if byte_size <= capacity:
                held.pop(key, None)
                held[key] = byte_size
                while sum(held.values()) > capacity:
                    held.popitem(last=False)
                    evictions += 1

        report = cache.report()
        assert (report.entries, report.byte_size, report.evictions) == (len(held), sum(held.values()), evictions)
        assert report.byte_size <= capacity
