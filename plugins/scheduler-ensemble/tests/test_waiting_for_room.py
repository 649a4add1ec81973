"""Requests that wait until a step has room for them, and a server that stops."""

import asyncio
import time
from collections.abc import Callable

import pytest

from naiad import Request
from naiad.errors import DeadlineExceededError, UnavailableError
from naiad_kit.metrics import MetricsApi
from naiad_testing.loops import until

from .parts import Parts, ask, plus


async def test_max_inflight_requests_holds_back_over_all_requests(chain: Parts) -> None:
    chain.add("slow", "x", "y", plus(1), "instance_group { count: 4 }")
    chain.join("b", "A", "B", "slow x=A -> y=B", scheduling="max_inflight_requests: 2")
    chain.hold("slow")

    async with chain.serving() as server:
        tasks = [asyncio.create_task(server.infer(ask("b"))) for _ in range(4)]
        await chain.held(2)
        outstanding = next(
            each for each in server.service(MetricsApi).collect() if each.name == "nv_inference_pending_request_count"
        )
        waiting = {dict(each.labels)["model"]: each.value for each in outstanding.samples}
        chain.release("slow")
        await asyncio.gather(*tasks)

    assert waiting["b"] == 2
    assert len(chain.requests["slow"]) == 4


async def test_who_leaves_while_waiting_for_room_is_forgotten(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        first, second, third = (asyncio.create_task(server.infer(ask("b", n))) for n in (1, 2, 3))
        await chain.held()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        chain.release("one")
        await asyncio.gather(first, third)

    assert [float(each.inputs["x"].array[0]) for each in chain.requests["one"]] == [1, 3]


async def test_a_deadline_counts_while_a_request_waits_for_room(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        first = asyncio.create_task(server.infer(ask("b")))
        await chain.held()
        with pytest.raises(DeadlineExceededError, match="still waited for room at a step"):
            await server.infer(ask("b", deadline=time.monotonic() + 0.1))
        chain.release("one")
        await first


async def test_a_server_that_stops_answers_what_its_ensembles_took_in(chain: Parts) -> None:
    chain.hold("one")

    async with chain.serving() as server:
        task = asyncio.create_task(server.infer(ask("e", 1)))
        await chain.held()
        stopping = asyncio.create_task(server.stop())
        await until(lambda: not server.ready().ready)
        with pytest.raises(UnavailableError):
            await server.infer(ask("e", 1))
        chain.release("one")
        response = await task
        assert await stopping

    assert float(response.outputs["C"].array[0]) == 12


class Refusing:
    """A version of a model that takes no more requests; `refused` are their ids."""

    name, version = "one", 1

    def __init__(self) -> None:
        self.refused: list[str] = []

    def submit(self, request: Request, deliver: object, streams: bool = False) -> None:
        self.refused.append(request.id)
        raise UnavailableError("it takes no more")


async def test_every_request_that_waits_for_room_is_answered_when_its_model_refuses_all(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        first = asyncio.create_task(server.infer(ask("b")))
        await chain.held()
        others = [asyncio.create_task(server.infer(ask("b"))) for _ in range(1000)]
        version = chain.ensembles["b"]
        await until(lambda: version.waiting == len(others))
        version._ensemble.steps = (Refusing(),)  # type: ignore[assignment]
        chain.release("one")
        await first
        outcomes = await asyncio.gather(*others, return_exceptions=True)

        assert version.outstanding == 0

    assert {str(each) for each in outcomes} == {"in ensemble 'b', it takes no more (step 0 of 'b', model 'one')"}


async def test_a_request_that_is_cancelled_as_it_gets_room_leaves_it_to_the_next(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        first = asyncio.create_task(server.infer(ask("b")))
        await chain.held()
        answered: list[str] = []
        second = server.submit(ask("b", id="second"), lambda outcome: (answered.append("second"), third.cancel()))
        third = server.submit(ask("b", id="third"), lambda outcome: answered.append("third"))
        server.submit(ask("b", id="fourth"), lambda outcome: answered.append("fourth"))
        version = chain.ensembles["b"]
        refusing = Refusing()
        version._ensemble.steps = (refusing,)  # type: ignore[assignment]
        chain.release("one")
        await first
        await until(lambda: not version.outstanding)

    assert second.over
    assert answered == refusing.refused == ["second", "fourth"]


class Admitted:
    """A held step that notes when it begins, and then `makes_room` for these: its request fails, and others with it."""

    def __init__(self, name: str, begun: list[str], makes_room: Callable[[], object] = lambda: None) -> None:
        self.name = name
        self._begun = begun
        self._makes_room = makes_room

    def admitted(self) -> None:
        self._begun.append(self.name)
        self._makes_room()


async def test_steps_that_get_room_at_once_begin_one_after_the_other_and_each_once(chain: Parts) -> None:
    begun: list[str] = []
    async with chain.serving():
        ensemble = chain.ensembles["e"]._ensemble
        fails = Admitted("fails", begun, lambda: [ensemble.admit(Admitted(name, begun)) for name in "bcd"])
        breaks = Admitted("breaks", begun, lambda: 1 / 0)

        ensemble.admit(fails)
        with pytest.raises(ZeroDivisionError):
            ensemble.admit(breaks)
        ensemble.admit(Admitted("after", begun))

    assert begun == ["fails", "b", "c", "d", "breaks", "after"]
