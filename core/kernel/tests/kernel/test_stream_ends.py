"""Streams of responses and their ends: slow readers, readers and models that leave, deadlines, unloads and stops."""

import asyncio
import contextlib
import threading
from contextlib import aclosing
from pathlib import Path

import pytest

from naiad._engine.streams import WINDOW
from naiad.backend import Answer, Batch, Sender
from naiad.errors import (
    DeadlineExceededError,
    ModelNotReadyError,
)
from naiad_testing.in_loop import FLOATS, off_the_loop, request
from naiad_testing.loops import jump, until

from .streaming import Caller, answers_of, reply, serving, values_of


async def test_a_dropped_sender_fails_its_request(tmp_path: Path) -> None:
    def execute(batch: Batch) -> Answer:
        batch.sender(0).send(reply(1))
        return [None]

    async with serving(tmp_path, execute) as server:
        first, (last,) = await answers_of(server)

    assert first == [1.0]
    assert "dropped the response sender of a request without saying that all is sent" in last


async def test_none_without_a_sender_is_an_error(tmp_path: Path) -> None:
    async with serving(tmp_path, lambda batch: [None]) as server:
        ((last,),) = await answers_of(server)

    assert "without having taken its response sender" in last


async def test_an_exception_ends_what_was_being_sent(tmp_path: Path) -> None:
    def execute(batch: Batch) -> Answer:
        batch.sender(0).send(reply(1))
        raise ValueError("in the middle")

    async with serving(tmp_path, execute) as server:
        first, (last,) = await answers_of(server)

    assert first == [1.0]
    assert "ValueError: in the middle" in last


async def test_a_slow_reader_holds_its_model_back(tmp_path: Path) -> None:
    counted: list[int] = []

    def execute(batch: Batch) -> Answer:
        for number in range(10 * WINDOW):
            counted.append(number)
            batch.sender(0).send(reply(number))
        batch.sender(0).send(None, final=True)
        return [None]

    async with serving(tmp_path, execute) as server, aclosing(server.stream(request("m", 1.0))) as responses:
        await anext(responses)
        before = -1
        while before != len(counted):  # it is held back once the count stands still over many rounds of the loop
            before = len(counted)
            await off_the_loop(lambda: threading.Event().wait(0.01))
        held_at = len(counted)
        rest = [response async for response in responses]

    assert held_at <= 3 * WINDOW
    assert len(rest) == 10 * WINDOW


async def test_a_reader_that_leaves_lets_its_model_go_on_and_know(tmp_path: Path) -> None:
    sent: list[bool] = []
    ended = threading.Event()

    def execute(batch: Batch) -> Answer:
        sender = batch.sender(0)
        while sender.send(reply(1)):
            pass
        sent.append(sender.is_cancelled())
        sender.send(None, final=True)
        ended.set()
        return [None]

    async with serving(tmp_path, execute) as server:
        async with aclosing(server.stream(request("m", 1.0))) as responses:
            await anext(responses)
        await off_the_loop(ended.wait)

    assert sent == [True]


async def test_who_executes_is_reported_a_cancelled_request(tmp_path: Path) -> None:
    notified, executing = threading.Event(), threading.Event()
    seen: list[bool] = []

    def execute(batch: Batch) -> Answer:
        (asked_for,) = batch.requests
        asked_for.on_cancelled = notified.set
        executing.set()
        notified.wait()
        seen.append(asked_for.cancelled)
        return {"OUTPUT": batch.input("INPUT")}

    async with serving(tmp_path, execute, FLOATS) as server:
        caller = Caller()
        call = server.submit(request("m", 1.0), caller)
        await off_the_loop(executing.wait)
        call.cancel()
        await off_the_loop(notified.wait)

    assert seen == [True]
    assert caller.outcomes == []


async def test_a_deadline_ends_a_stream(tmp_path: Path) -> None:
    senders: list[Sender] = []

    def execute(batch: Batch) -> Answer:
        senders.append(batch.sender(0))
        return [None]

    async with serving(tmp_path, execute) as server:
        caller = Caller()
        loop_now = asyncio.get_running_loop().time()
        server.submit(request("m", 1.0, deadline=loop_now + 5), caller, streams=True)
        await until(lambda: senders)
        await asyncio.to_thread(senders[0].send, reply(1))
        await jump(6)
        await caller.done.wait()

        assert senders[0].is_cancelled()
        assert await asyncio.to_thread(senders[0].send, None, True) is False
        senders.clear()

    assert values_of(caller.outcomes)[0] == [1.0]
    assert isinstance(caller.outcomes[-1], DeadlineExceededError)


async def test_a_model_is_unloaded_when_its_streams_have_ended(tmp_path: Path) -> None:
    senders: list[Sender] = []

    def execute(batch: Batch) -> Answer:
        senders.append(batch.sender(0))
        return [None]

    async with serving(tmp_path, execute, model_control_mode="explicit", load_model=("m",)) as server:
        caller = Caller()
        server.submit(request("m", 1.0), caller, streams=True)
        await until(lambda: senders)
        await server.unload("m")
        with pytest.raises(ModelNotReadyError):
            server.submit(request("m", 1.0), caller, streams=True)
        during = [entry.state for entry in server.index()]

        await asyncio.to_thread(senders[0].send, reply(1), True)
        senders.clear()
        await caller.done.wait()
        await until(lambda: [entry.state for entry in server.index()] == ["UNAVAILABLE"])

    assert during == ["UNLOADING"]
    assert values_of(caller.outcomes) == [([1.0],)]


async def test_a_server_that_stops_ends_streams_that_do_not_end(tmp_path: Path) -> None:
    senders: list[Sender] = []

    def execute(batch: Batch) -> Answer:
        senders.append(batch.sender(0))
        return [None]

    caller = Caller()
    async with serving(tmp_path, execute, exit_timeout_secs=0.05) as server:
        server.submit(request("m", 1.0), caller, streams=True)
        await until(lambda: senders)
        stopping = asyncio.ensure_future(server.stop())
        with contextlib.suppress(TimeoutError):
            while not stopping.done():
                await jump(0.1)
        await stopping

    assert values_of(caller.outcomes)[-1][0].startswith("ShuttingDownError")
    assert senders[0].is_cancelled()
    senders.clear()
