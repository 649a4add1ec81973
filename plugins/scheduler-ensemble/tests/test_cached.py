"""Ensembles behind a response cache: whole answers are kept for as long as the steps are the same."""

import asyncio
from collections.abc import Mapping

import naiad_cache
import naiad_scheduler_ensemble
from naiad import Server
from naiad_testing.caches import FakeCache

from .parts import Parts, ask, infer, plus

CACHED = "response_cache { enable: true }"


EXPLICIT = {"model-control-mode": "explicit", "load-model": ("e",)}


def caching(parts: Parts, cache: FakeCache, options: Mapping[str, object] = EXPLICIT) -> Server:
    plugins = [parts, naiad_scheduler_ensemble, naiad_cache, cache]
    return Server(model_repository=[parts.root], plugins=plugins, options={"cache-config": ("fake",), **options})


async def test_an_equal_request_runs_no_step(parts: Parts) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.join("e", "A", "B", "one x=A -> y=B", more=CACHED)

    async with caching(parts, FakeCache()) as server:
        answers = [await infer(server, ask("e", 1)) for _ in range(2)]
        (counted,) = server.statistics("e")

    assert answers == [{"B": 2}] * 2
    assert len(parts.requests["one"]) == 1
    assert (counted.success.count, counted.inference_count) == (2, 1)
    assert (counted.cache_hit.count, counted.cache_miss.count) == (1, 1)


async def test_a_step_that_asks_for_the_cache_is_answered_from_it_within_the_ensemble(parts: Parts) -> None:
    parts.add("one", "x", "y", plus(1), more=CACHED)
    parts.join("e", "A", "C", "one x=A -> y=B", "one x=B -> y=C")

    async with caching(parts, FakeCache()) as server:
        answers = [await infer(server, ask("e", 1)) for _ in range(3)]
        counted = {each.name: each for each in server.statistics()}

    assert answers == [{"C": 3}] * 3
    assert len(parts.requests["one"]) == 2
    assert (counted["one"].cache_hit.count, counted["e"].cache_hit.count) == (4, 0)
    assert counted["e"].success.count == 3


async def test_a_step_that_was_loaded_anew_answers_anew(parts: Parts) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.join("e", "A", "B", "one x=A -> y=B", more=CACHED)

    async with caching(parts, FakeCache()) as server:
        before = await infer(server, ask("e", 1))
        parts.functions["one"] = plus(10)
        await server.load("one")
        await server.unload("one")
        await server.load("one")
        after = [await infer(server, ask("e", 1)) for _ in range(2)]
        (counted,) = server.statistics("e")

    assert (before, after) == ({"B": 2}, [{"B": 11}] * 2)
    assert (counted.cache_hit.count, counted.cache_miss.count) == (1, 1)


async def test_a_step_that_is_replaced_under_the_ensemble_ends_what_was_kept_and_not_what_was_counted(
    parts: Parts,
) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.join("e", "A", "B", "one x=A -> y=B", more=CACHED)

    async with caching(parts, FakeCache()) as server:
        before = [await infer(server, ask("e", 1)) for _ in range(2)]
        parts.functions["one"] = plus(10)
        parts.write("one", (parts.root / "one" / "config.pbtxt").read_text() + " ")
        await server.load("one")
        after = [await infer(server, ask("e", 1)) for _ in range(2)]
        (counted,) = server.statistics("e")

    assert (before, after) == ([{"B": 2}] * 2, [{"B": 11}] * 2)
    assert (counted.cache_hit.count, counted.cache_miss.count) == (2, 2)


async def test_a_request_that_waits_for_the_cache_is_answered_although_the_ensemble_goes(parts: Parts) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.join("e", "A", "B", "one x=A -> y=B", more=CACHED)
    cache = FakeCache()

    async with caching(parts, cache) as server:
        cache.hold()
        task = asyncio.ensure_future(infer(server, ask("e", 1)))
        await asyncio.sleep(0)
        await server.unload("e", unload_dependents=True)
        cache.release()
        answer = await task

    assert answer == {"B": 2}
