"""Models that call an ensemble of themselves, which has room for so many requests: no call waits for ever."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from naiad import Request, Tensor
from naiad.backend import Answer, Batch, ModelContext
from naiad.errors import CallRingError
from naiad_kit.calls import ModelCalls, models_of
from naiad_testing.loops import until

from .parts import Part, Parts, ask, infer, plus

ROOM = "max_inflight_requests: 1"


class Calling:
    """Makes models of Parts that call others: `asks(name)` is a function that asks it for its own input less one."""

    def __init__(self, parts: Parts) -> None:
        self._contexts: dict[str, ModelContext] = {}
        self._load = parts.load
        parts.load = self.load  # type: ignore[method-assign]

    def load(self, context: ModelContext) -> Part:
        self._contexts[context.config.name] = context
        return self._load(context)

    def models(self, caller: str, batch: Batch) -> ModelCalls:
        """What a model calls others with while it executes that batch."""
        return models_of(self._contexts[caller]).within(batch.requests)

    def asks(self, caller: str, model: str, name: str, elsewhere: bool = False) -> Callable[[Batch], Answer]:
        """A function of `caller`: 0 or less is the answer to itself, all else one more than what `model` answers."""

        def answer(batch: Batch) -> Answer:
            x = batch.input("x")
            if float(x.flat[0]) <= 0:
                return {"y": x}
            models = self.models(caller, batch)
            request = Request(model, {name: Tensor.of(name, x - np.float32(1))})
            if elsewhere:
                with ThreadPoolExecutor(1) as pool:
                    response = pool.submit(models.infer, request).result()
            else:
                response = models.infer(request)
            (created,) = response.outputs.values()
            return {"y": created.array + np.float32(1)}

        return answer


@pytest.fixture
def calling(parts: Parts) -> Calling:
    return Calling(parts)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in execute", "on a thread of its own"])
async def test_a_model_that_calls_an_ensemble_full_of_itself_is_refused(
    parts: Parts, calling: Calling, elsewhere: bool
) -> None:
    parts.add("a", "x", "y", calling.asks("a", "e", "A", elsewhere), "instance_group { count: 4 }")
    parts.join("e", "A", "B", "a x=A -> y=B", scheduling=ROOM)

    async with parts.serving() as server:
        with pytest.raises(CallRingError) as caught:
            await server.infer(ask("e", 1))
        message = str(caught.value)

        assert "would wait for ever for room at step 0 of ensemble 'e'" in message
        assert "in the ring 'a' -> 'a'; set max_inflight_requests to more" in message
        assert await infer(server, ask("e", 0)) == {"B": 0}


async def test_the_same_with_room_for_both_is_answered(parts: Parts, calling: Calling) -> None:
    parts.add("a", "x", "y", calling.asks("a", "e", "A"), "instance_group { count: 4 }")
    parts.join("e", "A", "B", "a x=A -> y=B", scheduling="max_inflight_requests: 3")

    async with parts.serving() as server:
        assert await infer(server, ask("e", 2)) == {"B": 2}


async def test_the_ring_is_found_through_an_ensemble_around_the_full_one(parts: Parts, calling: Calling) -> None:
    parts.add("a", "x", "y", calling.asks("a", "f", "A"), "instance_group { count: 4 }")
    parts.join("e", "A", "B", "a x=A -> y=B", scheduling=ROOM)
    parts.join("f", "A", "B", "e A=A -> B=B", scheduling="max_inflight_requests: 2")

    async with parts.serving() as server:
        with pytest.raises(CallRingError, match="of ensemble 'e'"):
            await server.infer(ask("f", 1))
        assert await infer(server, ask("f", 0)) == {"B": 0}


async def test_a_call_that_closes_a_ring_with_one_that_waits_for_room_is_refused(
    parts: Parts, calling: Calling
) -> None:
    """b waits for room in e, which a has taken; then a calls b."""
    parts.add("a", "x", "y", calling.asks("a", "b", "x"))
    parts.add("b", "x", "y", calling.asks("b", "e", "A"))
    parts.join("e", "A", "B", "a x=A -> y=B", scheduling=ROOM)
    parts.hold("a")

    async with parts.serving() as server:
        through_e = asyncio.ensure_future(server.infer(ask("e", 2)))
        await parts.held()
        through_b = asyncio.ensure_future(server.infer(ask("b", 1, name="x")))
        await until(lambda: any(each.waiting for each in server.version_reports() if each.name == "e"))
        parts.release("a")
        with pytest.raises(CallRingError, match="ring 'a' -> 'b' -> 'a'"):
            await through_e
        response = await through_b

    assert float(response.outputs["y"].array[0]) == 1


async def test_a_call_that_waits_for_room_which_others_will_leave_is_answered(parts: Parts, calling: Calling) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.add("b", "x", "y", calling.asks("b", "e", "A"))
    parts.join("e", "A", "B", "one x=A -> y=B", scheduling=ROOM)
    parts.hold("one")

    async with parts.serving() as server:
        first = asyncio.ensure_future(infer(server, ask("e", 5)))
        await parts.held()
        second = asyncio.ensure_future(infer(server, ask("b", 5, name="x")))
        await until(lambda: any(each.waiting for each in server.version_reports() if each.name == "e"))
        parts.release("one")

        assert (await first, await second) == ({"B": 6}, {"y": 6})


async def test_many_requests_through_a_full_ensemble_of_their_caller_are_all_answered_or_refused(
    parts: Parts, calling: Calling
) -> None:
    parts.add("a", "x", "y", calling.asks("a", "e", "A"), "instance_group { count: 3 }")
    parts.join("e", "A", "B", "a x=A -> y=B", scheduling="max_inflight_requests: 2")

    async with parts.serving() as server:
        depths = [number % 4 for number in range(60)]
        outcomes = await asyncio.gather(*(infer(server, ask("e", depth)) for depth in depths), return_exceptions=True)

        assert all(
            isinstance(each, CallRingError) or each == {"B": depth}
            for each, depth in zip(outcomes, depths, strict=True)
        )
        assert await infer(server, ask("e", 1)) == {"B": 1}
