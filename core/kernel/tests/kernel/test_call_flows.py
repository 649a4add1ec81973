"""The responses of a call on their way to another thread, when the garbage collector or the end comes in between."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from naiad._kernel.call import Call
from naiad._kernel.calls.crossing import Crossing
from naiad.errors import ShuttingDownError
from naiad.scheduler import Ticket
from naiad.types import Request

from .loops import turns
from .serving import request


class Submitted:
    """Takes requests in, and notes which were taken back."""

    def __init__(self) -> None:
        self.deliver: Callable[[Any], None] = lambda outcome: None
        self.cancelled: list[Request] = []

    def __call__(self, asked: Request, deliver: Callable[[Any], None], streams: bool) -> Call:
        self.deliver = deliver
        return Call(lambda call: self.cancelled.append(call.request), asked, deliver, Ticket(0, 0.0))


class CollectingResponse:
    """A response that makes the garbage collector run while it is put."""

    final = False

    @property
    def is_empty(self) -> bool:
        gc.collect()
        return False


class ClosingLoop(asyncio.SelectorEventLoop):
    """An event loop that is closed whenever a thread wants something of it, but not when that thread looks."""

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Event loop is closed")


async def test_the_collector_may_drop_the_responses_of_a_call_while_one_is_put() -> None:
    submitted = Submitted()
    crossing = Crossing(submitted)
    ring: list[object] = [crossing.stream(request("m", 1), lambda: None)]
    ring.append(ring)
    await turns()

    del ring
    submitted.deliver(CollectingResponse())
    await turns()

    assert [each.model_name for each in submitted.cancelled] == ["m"]


async def test_dropped_responses_of_a_call_that_is_over_take_nothing_back() -> None:
    submitted = Submitted()
    crossing = Crossing(submitted)
    responses = crossing.stream(request("m", 1), lambda: None)
    await turns()

    submitted.deliver(ShuttingDownError("over"))
    del responses
    await turns()

    assert submitted.cancelled == []


def test_a_call_to_an_event_loop_that_has_just_closed_fails() -> None:
    async def make() -> Crossing:
        return Crossing(Submitted())

    loop = ClosingLoop()
    crossing = loop.run_until_complete(make())

    future = crossing.begin(request("m", 1), lambda: None)
    loop.close()

    with pytest.raises(ShuttingDownError):
        future.result(timeout=0)
