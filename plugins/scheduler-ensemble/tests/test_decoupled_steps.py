"""Ensembles with a step that gives any number of responses."""

import asyncio

import pytest

from naiad.errors import UnsupportedError

from .parts import Parts, ask, times


async def test_a_decoupled_step_makes_the_ensemble_decoupled(chain: Parts) -> None:
    chain.add("three", "x", "y", times(3), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "three x=A -> y=B", "ten x=B -> y=C")

    async with chain.serving() as server:
        policy = server.model_config("s").model_transaction_policy
        with pytest.raises(UnsupportedError, match="decoupled transaction policy"):
            await server.infer(ask("s"))
        responses = [each async for each in server.stream(ask("s", 0))]

    assert policy is not None
    assert policy.decoupled
    values = [float(each.outputs["C"].array[0]) for each in responses if each.outputs]
    assert values == [10, 11, 12]
    assert [each.final for each in responses].count(True) == 1
    assert responses[-1].final


async def test_a_decoupled_ensemble_counts_its_responses(chain: Parts) -> None:
    chain.add("three", "x", "y", times(3), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "three x=A -> y=C")

    async with chain.serving() as server:
        async for _ in server.stream(ask("s", 0)):
            pass
        (statistics,) = server.statistics("s")

    successes = [each.success.count for each in statistics.response_stats.values()]
    assert (statistics.inference_count, sum(successes)) == (1, 3)


async def test_a_caller_who_reads_slowly_holds_the_decoupled_step_back(chain: Parts) -> None:
    chain.add("many", "x", "y", times(5000), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "many x=A -> y=B", "one x=B -> y=C")

    async with chain.serving() as server:
        stream = server.stream(ask("s", 0))
        await anext(stream)
        before = len(chain.requests["one"])
        for _ in range(2000):
            await asyncio.sleep(0)
        stalled = len(chain.requests["one"])
        count = 1 + sum([bool(each.outputs) async for each in stream])

    assert count == 5000
    assert before <= stalled < 1000


@pytest.mark.parametrize("step", ["many x=A -> y=B", "inner A=A -> B=B"], ids=["a model", "an ensemble"])
async def test_a_decoupled_step_waits_for_room_behind_it(chain: Parts, step: str) -> None:
    chain.add("many", "x", "y", times(1000), "model_transaction_policy { decoupled: true }")
    chain.join("inner", "A", "B", "many x=A -> y=B")
    chain.join("s", "A", "C", step, "one x=B -> y=C", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        stream = server.stream(ask("s", 0))
        first = asyncio.ensure_future(anext(stream))
        await chain.held()
        for _ in range(2000):
            await asyncio.sleep(0)
        held = sum(len(each._held) for each in chain.ensembles["s"]._ensemble.calls)
        chain.release("one")
        await first
        count = 1 + sum([bool(each.outputs) async for each in stream])

    assert count == 1000
    assert held < 200
