"""A large cache works with as many steps as a small one."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from naiad_cache_local.cache import LocalCache
from naiad_kit.caches import CachedResponse


def lines_of(work: Callable[[], None]) -> int:
    """How many lines of Python the work runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def full(entries: int) -> LocalCache:
    cache = LocalCache(entries)
    for number in range(entries):
        cache.insert(number.to_bytes(4, "big"), CachedResponse((), {}, 1))
    return cache


@pytest.mark.parametrize("entries", [10, 10_000])
def test_the_number_of_entries_does_not_matter(entries: int) -> None:
    cache, one = full(entries), CachedResponse((), {}, 1)

    hit = lines_of(lambda: cache.lookup(b"\0\0\0\5", lambda results: None))
    miss = lines_of(lambda: cache.lookup(b"none", lambda results: None))
    insertion = lines_of(lambda: cache.insert(b"new", one))

    assert max(hit, miss, insertion) < 20
    assert cache.report().evictions == 1
