"""Memory: what a stream holds is bounded while it lasts, and free when it is over."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest

from naiad._engine.call import Call
from naiad._engine.streams import WINDOW, WINDOW_BYTES, ResponseStream, StreamSender
from naiad.backend import Answer, Batch, Reply
from naiad.errors import InternalError
from naiad.types import Request, Response
from naiad_testing.in_loop import off_the_loop, request
from naiad_testing.loops import turns, until
from naiad_testing.scheduling import Ordered

from .driven_streams import END, DrivenStreams, number
from .streaming import reply, serving

KINDS = (Call, Request, Response, ResponseStream, StreamSender)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """The garbage collector stands still, and has nothing to do when the test starts."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> Counter[str]:
    """How many objects of requests there are, garbage included."""
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in KINDS)


async def test_a_stream_that_is_over_is_free_without_the_garbage_collector(uncollected: None) -> None:
    driven = DrivenStreams(slots=2)
    before = alive()
    driven.submit("ends after its execution")
    driven.submit("ends in it")
    await turns()

    late, early = driven.sender("ends after its execution"), driven.sender("ends in it")
    early.post(number(1))
    early.post(None, final=True)
    await turns()
    driven.stream_on()
    driven.stream_on()
    late.post(number(2), final=True)
    del late, early
    await turns()
    driven.outcomes.clear()

    assert alive() == before


async def test_a_stream_that_was_broken_off_is_free_without_the_garbage_collector(uncollected: None) -> None:
    driven = DrivenStreams(slots=2)
    before = alive()
    call = driven.submit("is taken back")
    driven.submit("fails")
    await turns()

    leaving, failing = driven.sender("is taken back"), driven.sender("fails")
    call.cancel()
    driven.fail(InternalError("broke"), 1)
    driven.stream_on()
    del leaving, failing, call
    await turns()
    driven.outcomes.clear()

    assert alive() == before


@pytest.mark.parametrize("all_of_it", [True, False])
async def test_a_stream_that_was_read_is_free_without_the_garbage_collector(
    tmp_path: Path, uncollected: None, all_of_it: bool
) -> None:
    def execute(batch: Batch) -> Answer:
        sender = batch.sender(0)
        while sender.send(reply(1)) and not all_of_it:
            pass
        sender.send(None, final=True)
        return [None]

    async with serving(tmp_path, execute) as server:
        before = alive()
        async with aclosing(server.stream(request("m", 1.0))) as responses:
            async for _ in responses:
                if not all_of_it:
                    break
        del responses, _
        await until(lambda: alive() == before)


async def test_a_reader_that_forgets_its_stream_takes_it_back(tmp_path: Path) -> None:
    def execute(batch: Batch) -> Answer:
        while batch.sender(0).send(reply(1)):
            pass
        batch.sender(0).send(None, final=True)
        return [None]

    async with serving(tmp_path, execute) as server:
        forgotten: AsyncIterator[Response] = server.stream(request("m", 1.0))
        await anext(forgotten)
        never_read = server.stream(request("m", 1.0))
        del forgotten, never_read

        await until(lambda: server.statistics("m")[0].fail.count == 1)


async def test_a_slow_reader_of_very_many_responses_costs_as_much_as_one_of_few(tmp_path: Path) -> None:
    many = 20_000
    sent = 0

    def execute(batch: Batch) -> Answer:
        nonlocal sent
        for sent in range(1, many + 1):
            batch.sender(0).send(reply(sent), final=sent == many)
        return [None]

    ahead = taken = 0
    async with serving(tmp_path, execute) as server, aclosing(server.stream(request("m", 1.0))) as responses:
        async for _ in responses:
            taken += 1
            if taken % 100 == 0:
                await off_the_loop(lambda: None)
            ahead = max(ahead, sent - taken)

    assert taken == many
    assert ahead <= 3 * WINDOW


LARGE = 40_000
FLOATS = np.zeros(LARGE // 4, np.float32)
TEXT = np.array([b"x" * (LARGE // 2)] * 2, object)


@pytest.mark.parametrize("outputs", [{"FLOATS": FLOATS}, {"TEXT": TEXT}], ids=["FLOATS", "TEXT"])
async def test_of_large_responses_fewer_are_on_their_way(outputs: dict[str, np.ndarray]) -> None:
    driven = DrivenStreams()
    driven.submit("a")
    await turns()
    sender = driven.sender("a")

    rooms = [sender.post(Reply(outputs, {"number": value})) for value in range(8)]
    await turns()
    later = sender.post(Reply(outputs, {"number": 8}))

    assert [room is None for room in rooms] == [True] * (WINDOW_BYTES // LARGE) + [False] * 2
    assert [room.done() for room in rooms if room is not None] == [True] * 2
    assert later is None


async def test_a_sender_that_goes_on_the_moment_it_may_sends_no_more_than_may_be_on_their_way() -> None:
    driven = DrivenStreams()
    driven.submit("a")
    await turns()
    sender = driven.sender("a")
    sent = ahead = 0

    def go_on(_room: object = None) -> None:
        nonlocal sent, ahead
        while sent < 100:
            sent += 1
            room = sender.post(Reply({"FLOATS": FLOATS}, {"number": sent}))
            ahead = max(ahead, sent - len(driven.outcomes["a"]))
            if room is not None:
                room.add_done_callback(go_on)
                return

    go_on()
    await until(lambda: len(driven.outcomes["a"]) == 100)

    assert ahead <= WINDOW_BYTES // LARGE + 1


async def test_a_response_that_is_larger_than_all_that_may_be_on_their_way_goes_on_its_way() -> None:
    driven = DrivenStreams()
    driven.submit("a")
    await turns()
    sender = driven.sender("a")

    for value in range(3):
        large = Reply({"FLOATS": np.zeros(WINDOW_BYTES, np.float32)}, {"number": value})
        await asyncio.to_thread(sender.send, large)
    sender.post(None, final=True)
    await turns()

    assert driven.got("a") == [0, 1, 2, (END,)]


async def test_responses_that_are_held_back_hold_their_model_back() -> None:
    driven = DrivenStreams(Ordered, slots=2)
    driven.submit("a")
    driven.submit("b")
    await turns()
    first, second = driven.sender("a"), driven.sender("b")

    second.post(number(1))
    await turns()
    room = second.post(number(2))
    await turns()
    before = room is not None and room.done()
    first.post(None, final=True)
    await turns()
    after = room is not None and room.done()

    assert (before, after) == (False, True)
    assert driven.got("b") == [1, 2]
    assert driven.got("b") == [1, 2]
    assert second.post(number(3)) is None


async def test_responses_that_are_held_back_do_not_hold_a_model_that_models_call() -> None:
    driven = DrivenStreams(Ordered, slots=2)
    first = driven.submit("a")
    driven.submit("b")
    await turns()
    later = driven.sender("b")
    later.post(number(1))
    await turns()
    room = later.post(number(2))

    driven.queue.submit(Request("m", {}, id="inner", caller=first), 1, None, driven.outcomes["inner"].append)

    assert room is not None
    assert room.done()
    assert later.post(number(3)) is None
    await turns()
    assert driven.got("b") == []
    driven.sender("a").post(None, final=True)
    await turns()
    assert driven.got("b") == [1, 2, 3]
