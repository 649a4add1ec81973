"""Models that keep the order of their answers, and are called by models: calls of models are in no order."""

import asyncio

import pytest

import naiad_cache
from naiad.backend import Answer, Batch
from naiad_kit.calls import ModelCalls
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import request
from naiad_testing.loops import until
from naiad_testing.scheduling import Ordered, Scheduling

from .models_that_call import Calling, double, doubles_through, output_of, value, value_of

ORDERED = "instance_group { count: 3 } dynamic_batching { preserve_ordering: true }\n"


@pytest.mark.parametrize("config", ["", "response_cache { enable: true }\n"], ids=["alone", "behind a cache"])
async def test_a_model_that_keeps_an_order_may_ask_itself(calling: Calling, config: str) -> None:
    def counts_down(batch: Batch, models: ModelCalls) -> Answer:
        depth = value_of(batch)
        return output_of(depth if depth < 1 else value(models.infer(request("m", depth - 1))) + 1)

    calling.add("m", counts_down, ORDERED + config)

    async with calling.running(Scheduling(Ordered), naiad_cache, FakeCache(), cache_config=("fake",)) as server:
        assert value(await server.infer(request("m", 2))) == 2
        outcomes = await asyncio.gather(*(server.infer(request("m", 0)) for _ in range(5)))

    assert [value(each) for each in outcomes] == [0] * 5


async def test_it_may_wait_for_a_model_that_asks_it_for_somebody_else(calling: Calling) -> None:
    """The answer to `asks` would be behind that to the first request, which waits for the instance of `asks`."""
    calling.add(
        "m", lambda batch, models: double(batch, models) if value_of(batch) < 5 else asks_on(batch, models), ORDERED
    )
    calling.add("asks", doubles_through("m"))
    inside, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def asks_on(batch: Batch, models: ModelCalls) -> Answer:
        loop.call_soon_threadsafe(inside.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(10)
        return output_of(value(models.infer(request("asks", 1))))

    async with calling.running(Scheduling(Ordered)) as server:
        first = asyncio.ensure_future(server.infer(request("m", 5)))
        await inside.wait()
        other = asyncio.ensure_future(server.infer(request("asks", 2)))
        answer = await other
        go_on.set()

        assert (value(answer), value(await first)) == (5, 3)


async def test_the_answers_to_everybody_else_keep_their_order(calling: Calling) -> None:
    held = asyncio.Event()
    loop = asyncio.get_running_loop()

    def waits_first(batch: Batch, models: ModelCalls) -> Answer:
        if value_of(batch) == 1:
            asyncio.run_coroutine_threadsafe(held.wait(), loop).result(10)
        elif value_of(batch) == 2:
            models.infer(request("m", 3))
        return double(batch, models)

    calling.add("m", waits_first, ORDERED)
    came: list[float] = []

    async with calling.running(Scheduling(Ordered)) as server:
        tasks = [asyncio.ensure_future(server.infer(request("m", number))) for number in (1, 2)]
        for each in tasks:
            each.add_done_callback(lambda done: came.append(value(done.result())))
        await until(lambda: server.statistics("m")[0].inference_count == 2)
        before = list(came)
        held.set()
        await asyncio.gather(*tasks)

    assert (before, came) == ([], [2, 4])
