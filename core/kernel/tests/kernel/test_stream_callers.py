"""Callers that act while they receive a response: they cancel, raise, or send a request."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from naiad._engine.call import Call
from naiad.errors import ShuttingDownError
from naiad.server import Outcome
from naiad.types import Request
from naiad_testing.loops import turns
from naiad_testing.scheduling import AllAtOnce, Ordered

from .driven_streams import END, DrivenStreams, number, value_of
from .schedulers import Recording


class Batching(AllAtOnce, Recording):
    """All that waits goes as one batch; it remembers what was settled."""


class Acting:
    """Callers of one queue that act on each outcome; `log` has the outcomes of all of them, in order."""

    def __init__(self, driven: DrivenStreams) -> None:
        self.log: list[tuple[str, Any]] = []
        self.calls: dict[str, Call] = {}
        self._driven = driven

    def ask(self, name: str, act: Callable[[], object] = lambda: None) -> None:
        """A request whose caller does that each time, before it logs the outcome."""

        def deliver(outcome: Outcome) -> None:
            act()
            self.log.append((name, value_of(outcome)))

        self.calls[name] = self._driven.queue.submit(Request("m", {}, id=name), 1, None, deliver)

    def leave(self, name: str) -> Callable[[], None]:
        """What takes that call back."""
        return lambda: self.calls[name].cancel()


@pytest.mark.parametrize("count", [1, 2])
async def test_one_that_leaves_when_it_is_reported_is_reported_no_more(count: int) -> None:
    driven = DrivenStreams()
    acting = Acting(driven)
    acting.ask("a", acting.leave("a"))
    await turns()
    sender = driven.sender("a")

    for value in range(count):
        sender.post(number(value))
    sender.post(None, final=True)
    await turns()
    driven.stream_on()

    assert acting.log == [("a", 0)]
    assert (driven.statistics.success.count, driven.statistics.fail.count) == (0, 1)
    assert await driven.is_drained()


async def test_one_that_leaves_when_it_is_informed_what_was_held_back_is_reported_no_more() -> None:
    driven = DrivenStreams(Ordered, slots=2)
    acting = Acting(driven)
    acting.ask("a")
    acting.ask("b", acting.leave("b"))
    await turns()
    first, second = driven.sender("a"), driven.sender("b")
    for value in range(3):
        second.post(number(value))
    await turns()
    before = list(acting.log)

    first.post(None, final=True)
    await turns()

    assert (before, acting.log) == ([], [("a", (END,)), ("b", 0)])


@pytest.mark.parametrize("over", [True, False])
async def test_one_that_takes_another_back_is_reported_in_order_all_the_same(over: bool) -> None:
    driven = DrivenStreams(Ordered, slots=4)
    acting = Acting(driven)
    acting.ask("a")
    acting.ask("b", acting.leave("d"))
    acting.ask("c")
    acting.ask("d")
    await turns()
    senders = {name: driven.sender(name) for name in "abc"}
    for value in range(3):
        senders["b"].post(number(value), final=over and value == 2)
    senders["c"].post(number(9), final=True)
    await turns()

    senders["a"].post(None, final=True)
    await turns()
    if not over:
        senders["b"].post(number(3), final=True)
    await turns()

    of_b = [("b", 0), ("b", 1), ("b", (2,))] if over else [("b", 0), ("b", 1), ("b", 2), ("b", (3,))]
    assert acting.log == [("a", (END,)), *of_b, ("c", (9,))]


async def test_one_that_takes_its_neighbour_in_a_batch_back_settles_it_once() -> None:
    scheduler = Batching()
    driven = DrivenStreams(lambda: scheduler)
    acting = Acting(driven)
    acting.ask("a", acting.leave("b"))
    acting.ask("b")
    await turns()

    driven.finish()

    assert [name for name, _ in acting.log] == ["a"]
    assert sorted(scheduler.settled) == [1, 2]
    assert (driven.statistics.success.count, driven.statistics.fail.count) == (1, 1)


async def test_one_that_takes_another_back_while_all_that_waits_fails_settles_it_once() -> None:
    scheduler = Recording()
    driven = DrivenStreams(lambda: scheduler, slots=0)
    acting = Acting(driven)
    acting.ask("a", acting.leave("b"))
    acting.ask("b")

    driven.queue.fail_all(ShuttingDownError("stop"))

    assert acting.log == [("a", ("ShuttingDownError",))]
    assert sorted(scheduler.settled) == [1, 2]
    assert driven.statistics.fail.count == 2


async def test_one_that_raises_harms_neither_its_own_stream_nor_others() -> None:
    driven = DrivenStreams(Ordered, slots=2)
    acting = Acting(driven)
    acting.ask("a", partial(int, "no number"))
    acting.ask("b")
    await turns()
    first, second = driven.sender("a"), driven.sender("b")

    second.post(number(1), final=True)
    room = first.post(number(1))
    first.post(number(2), final=True)
    await turns()

    assert acting.log == [("b", (1,))]
    assert room is None
    assert driven.statistics.success.count == 2


async def test_one_that_asks_again_when_it_is_reported_is_served() -> None:
    driven = DrivenStreams(Ordered, slots=2)
    acting = Acting(driven)
    acting.ask("a", lambda: acting.calls.setdefault("again", driven.submit("again")))
    await turns()

    driven.sender("a").post(None, final=True)
    driven.stream_on()
    await turns()
    driven.sender("again").post(None, final=True)
    driven.stream_on()
    await turns()

    assert driven.got("again") == [(END,)]
    assert await driven.is_drained()


async def test_a_model_that_fails_to_take_note_of_an_end_harms_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    driven = DrivenStreams(Ordered)
    acting = Acting(driven)
    acting.ask("a")
    acting.ask("b")
    await turns()
    sender = driven.sender("a")
    acting.calls["a"].request.on_cancelled = partial(int, "no number")

    acting.calls["a"].cancel()
    sender.post(None, final=True)
    driven.stream_on()
    await turns()
    driven.finish()

    assert "a request was cancelled" in caplog.text
    assert [name for name, _ in acting.log] == ["b"]
    assert await driven.is_drained()


async def test_a_model_learns_that_its_request_is_cancelled_before_the_calls_that_it_made_end() -> None:
    driven = DrivenStreams(Ordered)
    acting = Acting(driven)
    acting.ask("a")
    await turns()
    order: list[str] = []
    call = acting.calls["a"]
    call.request.on_cancelled = partial(order.append, "model")
    call.watch(partial(order.append, "calls"))

    call.cancel()
    driven.finish()

    assert order == ["model", "calls"]
