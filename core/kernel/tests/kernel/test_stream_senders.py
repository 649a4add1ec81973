"""Senders under pressure: several threads, readers that stand still, ends of all kinds, and the garbage collector."""

import asyncio
import gc
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from naiad._engine.call import Call
from naiad._engine.streams import WINDOW, StreamSender
from naiad.backend import Reply
from naiad.errors import InternalError, ModelFailedError, ShuttingDownError, WorkerDiedError
from naiad.scheduler import Decision
from naiad_testing.loops import JumpingLoop, jump, turns, until

from .driven_streams import END, DrivenStreams, number
from .schedulers import Recording

Way = Callable[[DrivenStreams, Call, StreamSender], object]


async def streaming(driven: DrivenStreams, seconds: float | None = None) -> tuple[Call, StreamSender]:
    """A call that executes, and its sender."""
    call = driven.submit("a", seconds=seconds)
    await turns()
    return call, driven.sender("a")


class Interrupting(dict[str, Any]):
    """Outputs that do something while they are read, as another thread may."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def items(self) -> Any:
        self._act()
        return super().items()


async def test_what_one_thread_sends_while_another_says_that_all_is_sent_is_passed_over() -> None:
    driven = DrivenStreams()
    _, sender = await streaming(driven)

    sender.post(Reply(Interrupting(lambda: sender.post(None, final=True)), {"number": 1}))
    driven.stream_on()
    await turns()

    assert driven.got("a") == [(END,)]
    assert await driven.is_drained()
    with pytest.raises(InternalError, match="has been closed"):
        sender.post(number(2))


async def test_no_response_takes_less_than_no_time() -> None:
    driven = DrivenStreams()
    _, sender = await streaming(driven)

    sender.post(Reply(Interrupting(lambda: sender.post(number(1))), {"number": 2}))
    sender.post(None, final=True)
    await turns()

    assert driven.got("a") == [1, 2, (END,)]
    counted = driven.statistics.response_stats.values()
    assert [each for each in counted if each.compute_infer.ns < 0 or each.success.ns < 0] == []


async def test_many_threads_send_on_one_sender() -> None:
    driven = DrivenStreams()
    _, sender = await streaming(driven)

    def send(first: int) -> None:
        for value in range(first, first + 300):
            sender.send(number(value))

    await asyncio.gather(*(asyncio.to_thread(send, 1000 * thread) for thread in range(8)))
    sender.post(None, final=True)
    await until(lambda: driven.got("a")[-1:] == [(END,)])

    *numbers, _ = driven.got("a")
    assert sorted(numbers) == [1000 * thread + value for thread in range(8) for value in range(300)]
    for thread in range(8):
        mine = [value for value in numbers if value // 1000 == thread]
        assert mine == sorted(mine)


async def test_who_stops_waiting_for_room_harms_nothing_else() -> None:
    driven = DrivenStreams()
    call, sender = await streaming(driven)
    call.pause()
    first, second = sender.post(number(1)), sender.post(number(2))
    assert first is not None
    assert second is not None

    cancelled = first.cancel()
    call.cancel()

    assert not cancelled
    assert second.done()
    assert sender.is_cancelled()


WHATEVER_IT_DOES: dict[str, Way] = {
    "its reader goes on": lambda driven, call, sender: call.resume(),
    "its reader leaves": lambda driven, call, sender: call.cancel(),
    "another thread says that all is sent": lambda driven, call, sender: sender.post(None, final=True),
    "the server stops": lambda driven, call, sender: driven.queue.fail_all(ShuttingDownError("stop"), executing=True),
}
WHILE_IT_EXECUTES: dict[str, Way] = {
    "its batch fails": lambda driven, call, sender: driven.fail(ModelFailedError("broke")),
    "its worker dies": lambda driven, call, sender: driven.die(WorkerDiedError("died")),
    "it is answered otherwise": lambda driven, call, sender: driven.finish(),
}


@pytest.mark.parametrize(
    ("way", "executes"),
    [
        *(pytest.param(way, True, id=name) for name, way in (WHATEVER_IT_DOES | WHILE_IT_EXECUTES).items()),
        *(pytest.param(way, False, id=f"{name}, afterwards") for name, way in WHATEVER_IT_DOES.items()),
    ],
)
async def test_senders_that_wait_go_on_when(way: Way, executes: bool) -> None:
    driven = DrivenStreams()
    call, sender = await streaming(driven)
    if not executes:
        driven.stream_on()
    call.pause()
    waiting = [asyncio.ensure_future(asyncio.to_thread(sender.send, number(value))) for value in range(3)]
    await until(lambda: len(driven.got("a")) == 3)
    held = [each.done() for each in waiting]

    way(driven, call, sender)
    await asyncio.gather(*waiting)

    assert held == [False] * 3


async def test_a_sender_that_waits_goes_on_when_the_deadline_passes() -> None:
    driven = DrivenStreams()
    call, sender = await streaming(driven, seconds=5)
    driven.stream_on()
    call.pause()
    room = sender.post(number(1))

    await jump(6)

    assert room is not None
    assert room.done()
    assert driven.got("a") == [1, ("DeadlineExceededError",)]


async def test_a_reader_may_stand_still_before_there_is_anything_to_read_and_after_the_end() -> None:
    driven = DrivenStreams()
    call = driven.submit("a")
    call.pause()
    await turns()
    sender = driven.sender("a")
    before = sender.post(number(1))
    call.resume()
    sender.post(None, final=True)
    await turns()

    call.pause()
    call.resume()

    assert before is not None
    assert before.done()
    assert driven.got("a") == [1, (END,)]


async def test_responses_without_a_reader_do_not_pile_up() -> None:
    driven = DrivenStreams()
    call, sender = await streaming(driven)
    call.cancel()

    rooms = [sender.post(number(value)) for value in range(10 * WINDOW)]
    sender.post(None, final=True)
    await turns()

    assert set(rooms) == {None}
    assert sum(each.cancel.count for each in driven.statistics.response_stats.values()) == WINDOW + 1


def test_a_model_that_sends_when_the_event_loop_is_closed_does_not_wait() -> None:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        driven = runner.run(_make())
        call, sender = runner.run(streaming(driven))
        call.pause()

    def send() -> None:
        for value in range(10 * WINDOW):
            sender.send(number(value))

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()


async def _make() -> DrivenStreams:
    return DrivenStreams()


class Collecting(Recording):
    """The garbage collector runs while it decides; `nested` says whether an end was reported meanwhile."""

    decides = nested = False

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.decides = True
        gc.collect()
        self.decides = False
        return super().decide(now, idle)

    def settle(self, tickets: Sequence[int], now: float) -> None:
        self.nested |= self.decides
        super().settle(tickets, now)


async def test_a_sender_that_the_garbage_collector_drops_ends_its_stream_later() -> None:
    scheduler = Collecting()
    driven = DrivenStreams(lambda: scheduler)
    _, sender = await streaming(driven)
    driven.stream_on()
    circle: list[object] = [sender]
    circle.append(circle)
    del circle, sender

    driven.submit("b")
    await turns()

    assert driven.got("a") == [("ModelFailedError",)]
    assert (scheduler.nested, scheduler.settled) == (False, [1])


async def test_a_model_that_takes_note_of_an_end_by_sending_the_last_response_has_one_end() -> None:
    scheduler = Recording()
    driven = DrivenStreams(lambda: scheduler)
    call, sender = await streaming(driven, seconds=5)
    call.request.on_cancelled = partial(sender.post, None, final=True)
    driven.stream_on()

    await jump(6)

    assert driven.got("a") == [("DeadlineExceededError",)]
    assert scheduler.settled == [1]
    assert await driven.is_drained()
