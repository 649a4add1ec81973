"""Requests that wait until a step has room for them, and a server that stops."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

import numpy as np
import pytest

from naiad import Request, Response, Tensor
from naiad.errors import DeadlineExceededError, UnavailableError
from naiad.server import Deliver, Outcome
from naiad_kit.metrics import MetricsApi
from naiad_testing.loops import turns, until

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


async def test_a_receiver_that_raises_does_not_keep_others_from_room(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")
    chain.hold("one")
    answered: list[str] = []

    def raises(outcome: Outcome) -> None:
        answered.append("second")
        raise ValueError("a broken receiver")

    async with chain.serving() as server:
        first = asyncio.create_task(server.infer(ask("b")))
        await chain.held()
        server.submit(ask("b"), raises)
        server.submit(ask("b"), lambda outcome: answered.append("third"))
        version = chain.ensembles["b"]
        version._ensemble.steps = (Refusing(),)  # type: ignore[assignment]
        chain.release("one")
        await first
        await turns()
        assert version.outstanding == 0

    assert answered == ["second", "third"]


class Patient:
    """A version of a model that answers with y when a test says so, whatever the deadline of the request."""

    name, version = "patient", 1
    over, queue_ns, phases = False, 0, (0, 0, 0)

    def __init__(self) -> None:
        self.deliver: deque[Deliver] = deque()

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> "Patient":
        self.deliver.append(deliver)
        return self

    def answer(self) -> None:
        self.deliver.popleft()(Response(self.name, 1, "", {"y": Tensor.of("y", np.zeros(4, np.float32))}))

    def resume(self) -> None:
        pass

    def cancel(self) -> None:
        pass


async def test_a_request_whose_deadline_passes_in_a_step_does_not_wait_for_room_after_it(chain: Parts) -> None:
    chain.join("b", "A", "C", "one x=A -> y=B", "ten x=B -> y=C", scheduling="max_inflight_requests: 1")

    async with chain.serving() as server:
        version, one, ten = chain.ensembles["b"], Patient(), Patient()
        version._ensemble.steps = (one, ten)  # type: ignore[assignment]
        outcomes: list[Outcome] = []
        deadline = time.monotonic() + 0.1
        server.submit(ask("b"), lambda _: None)
        server.submit(ask("b", deadline=deadline), outcomes.append)
        assert version.waiting == 1
        one.answer()
        await until(lambda: len(one.deliver) == len(ten.deliver) == 1)
        await until(lambda: time.monotonic() > deadline + 0.05)
        assert not outcomes
        one.answer()
        await until(lambda: outcomes)
        ten.answer()

    assert "still waited for room at a step" in str(outcomes)


class Admitted:
    """A held step that notes when it begins, and then `makes_room` for these: its request fails, and others with it."""

    def __init__(self, name: str, begun: list[str], makes_room: Callable[[], object] = lambda: None) -> None:
        self.name = name
        self._begun = begun
        self._makes_room = makes_room

    def admitted(self) -> None:
        self._begun.append(self.name)
        self._makes_room()


async def test_steps_that_get_room_at_once_begin_one_after_the_other_and_each_once(
    chain: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[str] = []
    async with chain.serving():
        ensemble = chain.ensembles["e"]._ensemble
        fails = Admitted("fails", begun, lambda: [ensemble.admit(Admitted(name, begun)) for name in "bcd"])
        breaks = Admitted("breaks", begun, lambda: [ensemble.admit(Admitted("after", begun)), 1 / 0])

        ensemble.admit(fails)
        ensemble.admit(breaks)

    assert begun == ["fails", "b", "c", "d", "breaks", "after"]
    assert "ZeroDivisionError" in caplog.text
