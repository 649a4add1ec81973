"""A cache that keeps not answering is skipped for growing times, and looked up again when it answers."""

from pathlib import Path

import pytest

from naiad_cache import breaker as breaking
from naiad_cache.breaker import Breaker
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import request
from naiad_testing.loops import jump, turns, until
from naiad_testing.metric_values import collect

from .caching import caching, values


def opened(breaker: Breaker, now: float = 10.0) -> Breaker:
    """The breaker after three lookups in a row that were not answered by `now`."""
    for _ in range(3):
        breaker.timed_out(now - 2, now)
    return breaker


def test_a_closed_breaker_allows_every_lookup() -> None:
    breaker = Breaker()

    pauses = [breaker.timed_out(1.0, 3.0), breaker.timed_out(2.0, 4.0)]

    assert pauses == [0.0, 0.0]
    assert not breaker.is_open
    assert breaker.allows(5.0)


def test_three_lookups_without_an_answer_open_it_for_a_second() -> None:
    breaker = opened(Breaker(), now=10.0)

    assert [breaker.allows(10.9), breaker.allows(11.0)] == [False, True]
    assert breaker.skipped == 1


def test_lookups_from_before_the_pause_do_not_lengthen_it() -> None:
    breaker = opened(Breaker(), now=10.0)

    assert breaker.timed_out(9.0, 10.5) == 0.0
    assert breaker.allows(11.0)


def test_each_lookup_after_a_pause_that_is_not_answered_doubles_the_pause_up_to_a_minute() -> None:
    breaker, now, pauses = opened(Breaker()), 10.0, [1.0]

    for _ in range(8):
        now += pauses[-1]
        assert breaker.allows(now)
        assert not breaker.allows(now + 0.5)  # one at a time
        pauses.append(breaker.timed_out(now, now + 2))
        now += 2

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_an_answer_closes_it() -> None:
    breaker = opened(Breaker(), now=10.0)
    breaker.allows(11.0)

    assert breaker.answered()
    assert not breaker.answered()
    assert breaker.allows(11.0)
    assert opened(breaker, now=20.0).timed_out(20.0, 22.0) == 2.0


async def test_requests_go_past_a_cache_that_hangs(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = FakeCache()

    async with caching(tmp_path, backend, cache) as server:
        cache.hold()
        delivered: list[object] = []
        for number in range(3):
            server.submit(request("m", number), delivered.append)
        await jump(2.1)
        await until(lambda: len(delivered) == 3)
        for number in range(5):
            assert values(await server.infer(request("m", number))) == [number]  # without a jump of the clock
        families = {family.name: family.samples for family in collect(server)}

    assert cache.events.count("lookup") == 3
    assert "cache 'fake' has not answered 3 lookups in a row; requests go past it for 1 s" in caplog.text
    assert [sample.value for sample in families["naiad_cache_skipped_total"]] == [5]


async def test_a_cache_that_answers_again_is_used_again(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(breaking, "FIRST_PAUSE", 0.0)
    cache = FakeCache()

    async with caching(tmp_path, backend, cache) as server:
        await server.infer(request("m", 7))
        cache.hold()
        delivered: list[object] = []
        for number in range(3):
            server.submit(request("m", number), delivered.append)
        await jump(2.1)
        await until(lambda: len(delivered) == 3)
        cache.release()
        await turns()
        executed = len(backend.batches)

        assert [values(await server.infer(request("m", 7))) for _ in range(2)] == [[7], [7]]

    assert len(backend.batches) == executed
    assert "cache 'fake' answers again" in caplog.text
