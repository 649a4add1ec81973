"""The responses of a call on their way to another thread, when the garbage collector or the end comes in between."""

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from naiad.errors import ShuttingDownError
from naiad.in_flight import Occupancy
from naiad.types import Request, Response
from naiad_model_calls.loop_bridge import LoopBridge
from naiad_model_calls.response_flow import MANY, ResponseFlow, settle
from naiad_testing.in_loop import request
from naiad_testing.loops import turns


class Submitted:
    """A server that takes requests in, and notes which were taken back; it is its only request as well."""

    def __init__(self) -> None:
        self.submitted: Request | None = None
        self.deliver: Callable[[Any], None] = lambda outcome: None
        self.cancelled: list[Request] = []

    def submit(self, request: Request, deliver: Callable[[Any], None], streams: bool) -> "Submitted":
        self.submitted, self.deliver = request, deliver
        return self

    def cancel(self) -> None:
        if self.submitted is not None:
            self.cancelled.append(self.submitted)

    def occupancy(self) -> Iterator[Occupancy]:
        return iter(())


class CollectingResponse:
    """A response that makes the garbage collector run while it is put."""

    @property
    def final(self) -> bool:
        gc.collect()
        return False


class ClosingLoop(asyncio.SelectorEventLoop):
    """An event loop that is closed whenever a thread wants something of it, but not when that thread looks."""

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Event loop is closed")


def test_a_resume_that_comes_late_does_not_let_the_model_run_on() -> None:
    """The loop takes a batch of responses, and pauses, between the wish to resume and its fulfilment."""
    paused: list[str] = []
    flow = ResponseFlow(lambda: paused.append("pause"), lambda: paused.append("resume"))
    for _ in range(MANY // 2 + 1):
        flow.put(Response("m", 1, "", {}, final=False))

    flow.begin_next()
    for _ in range(MANY):
        flow.put(Response("m", 1, "", {}, final=False))

    assert paused[0] == "resume"
    assert paused[-1] == "pause"
    paused.append("resume")  # that of before, which was posted to the loop
    flow.put(Response("m", 1, "", {}, final=False))
    assert paused[-1] == "pause"


async def test_the_collector_may_drop_the_responses_of_a_call_while_one_is_put() -> None:
    submitted = Submitted()
    bridge = LoopBridge(submitted)
    ring: list[object] = [bridge.stream(request("m", 1), lambda: None)]
    ring.append(ring)
    await turns()

    del ring
    submitted.deliver(CollectingResponse())
    await turns()

    assert [each.model_name for each in submitted.cancelled] == ["m"]


async def test_dropped_responses_of_a_call_that_is_over_take_nothing_back() -> None:
    submitted = Submitted()
    bridge = LoopBridge(submitted)
    responses = bridge.stream(request("m", 1), lambda: None)
    await turns()

    submitted.deliver(ShuttingDownError("over"))
    del responses
    await turns()

    assert submitted.cancelled == []


def test_a_call_to_an_event_loop_that_has_just_closed_fails() -> None:
    async def make() -> LoopBridge:
        return LoopBridge(Submitted())

    loop = ClosingLoop()
    bridge = loop.run_until_complete(make())

    future = bridge.begin(request("m", 1), lambda: None)
    loop.close()

    with pytest.raises(ShuttingDownError):
        future.result(timeout=0)


@pytest.mark.parametrize(
    "kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, ArithmeticError]
)
def test_a_callback_on_the_future_of_a_call_may_raise(kind: type[BaseException]) -> None:
    def leave(future: object) -> None:
        raise kind("the callback left")

    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # as `naiad serve` does
    called: Future[Response] = Future()
    called.add_done_callback(leave)
    answer = Response("m", 1, "", {})

    settle(called, answer)

    signal.signal(signal.SIGINT, before)
    assert called.result() is answer
