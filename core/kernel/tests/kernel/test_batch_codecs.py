"""Batch codecs: who brings them, the order of their executions, and what becomes of requests when one raises."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad._engine import responses
from naiad._engine.queue import ModelQueue
from naiad.backend import Answer, Instance, ModelContext, Reschedule
from naiad.batch import Batch
from naiad.codec import CodecQueue, Completion, Execution, QueuedRequest, ResponseBuilder
from naiad.errors import InternalError, NaiadError
from naiad.scheduler import Dispatch, Ticket
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_config import ModelConfig
from naiad_statistics.versions import VersionCounters
from naiad_testing.in_loop import FLOATS, rows, running, write_model
from naiad_testing.loops import turns
from naiad_testing.scheduling import AllAtOnce, Scheduling
from naiad_testing.steered import Steered


class OneByOne:
    """A codec that executes the requests of a batch one after the other; it raises in the methods `broken`.

    `open` is what it says is under way, and `calls` the methods that were called.
    """

    live = 0

    def __init__(self, *broken: str) -> None:
        self.open = 0
        self.calls: list[str] = []
        self.context: ModelContext | None = None
        self._broken = broken

    def read(self, answer: Answer, batch: Batch, responses: ResponseBuilder) -> Sequence[Outcome | Reschedule | None]:
        self._perhaps("read")
        return responses.read(answer, batch)

    def warmup_request(self, request: Request, index: int) -> Request:
        return request

    def warmed_up(self, instance: Instance, requests: Sequence[Request]) -> None:
        return None

    def begin(self, queue: CodecQueue) -> "OneByOne":
        self.queue = queue
        return self

    def keeps(self, request: Request) -> bool:
        return False

    def arrived(self, ticket: Ticket) -> None:
        self._perhaps("arrived")

    def build(self, dispatch: Dispatch, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        return [Execution([each], Batch([each.request], [1])) for each in requests]

    def completed(
        self, batch: Batch, outcomes: Sequence[Outcome | Reschedule | None], error: NaiadError | None
    ) -> Completion | None:
        self._perhaps("completed")
        return None

    def streamed(self, request: QueuedRequest, outcome: Outcome) -> None:
        self._perhaps("streamed")

    def withdrawn(self, request: QueuedRequest) -> None:
        self._perhaps("withdrawn")

    def lost(self, slot: int) -> None:
        self._perhaps("lost")

    def ended(self, ends: Sequence[Any]) -> None:
        self._perhaps("ended")

    def end_all(self, unloading: bool) -> None:
        self._perhaps("end_all unload" if unloading else "end_all")

    def _perhaps(self, method: str) -> None:
        self.calls.append(method)
        if method in self._broken:
            raise LookupError(f"{method} is beyond me")


class Codec:
    """The codec of a version, whose queue's codec is a OneByOne."""

    def __init__(self, opened: OneByOne) -> None:
        self._opened = opened
        self.read, self.warmup_request, self.warmed_up = opened.read, opened.warmup_request, opened.warmed_up

    def open(self, queue: CodecQueue) -> OneByOne:
        return self._opened.begin(queue)


class Driven:
    """A queue with one slot; `sent` are the executions that a test answers, `outcomes` what each request got."""

    def __init__(self, codec: OneByOne) -> None:
        self.sent: list[Any] = []
        self.outcomes: dict[str, list[Outcome]] = {}
        builder = responses.ResponseBuilder(ModelConfig(name="m"), 1)
        counters = VersionCounters(devices=[-1])
        self.queue = ModelQueue(builder, counters, codec=Codec(codec))
        self.queue.open(AllAtOnce, [self.sent.append])
        self.queue.free(0)

    async def submit(self, *names: str) -> list[Any]:
        calls = []
        for name in names:
            results = self.outcomes[name] = []
            calls.append(self.queue.submit(Request("m", {}, id=name), 1, None, results.append))
        await turns()
        return calls

    def answer(self) -> str:
        (execution,) = self.sent
        self.sent.clear()
        (request,) = execution.batch.requests
        execution.outcomes = [Response("m", 1, request.id, {})]
        self.queue.done(execution)
        return request.id


async def test_the_executions_of_a_batch_follow_each_other_at_their_slot() -> None:
    driven = Driven(OneByOne())
    await driven.submit("a", "b", "c")

    assert [driven.answer() for _ in range(3)] == ["a", "b", "c"]
    assert driven.sent == []
    assert all(isinstance(outcome, Response) for (outcome,) in driven.outcomes.values())


async def test_what_was_to_follow_an_execution_fails_with_its_worker() -> None:
    driven = Driven(OneByOne())
    await driven.submit("a", "b")
    execution = driven.sent.pop()
    execution.error = InternalError("it died")

    driven.queue.lose(0)
    driven.queue.lost(execution)

    assert [str(outcome) for (outcome,) in driven.outcomes.values()] == ["it died", "it died"]
    assert driven.queue.outstanding == 0


async def test_a_codec_that_cannot_take_a_batch_back_fails_it_and_gives_the_slot_back() -> None:
    driven = Driven(OneByOne("completed"))
    await driven.submit("a")
    driven.answer()
    await driven.submit("b")

    assert driven.answer() == "b"
    assert [str(outcome) for (outcome,) in driven.outcomes.values()] == [
        "the answer of model 'm' was lost: LookupError: completed is beyond me"
    ] * 2


async def test_a_codec_that_fails_on_arrival_fails_like_the_scheduler() -> None:
    driven = Driven(OneByOne("arrived"))

    with pytest.raises(InternalError, match="LookupError: arrived is beyond me"):
        await driven.submit("a")

    assert driven.queue.outstanding == 0


@pytest.mark.parametrize("broken", ["withdrawn", "end_all unload"])
async def test_a_codec_that_raises_without_a_caller_is_logged(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    driven = Driven(OneByOne(broken))
    driven.queue.lose(0)
    (call,) = await driven.submit("a")

    call.cancel()
    driven.queue.retire()

    assert driven.queue.outstanding == 0
    assert "the batch codec of model 'm' failed" in caplog.text


async def test_a_queue_is_drained_when_its_codec_has_nothing_open() -> None:
    codec = OneByOne()
    driven = Driven(codec)
    codec.open = 1
    drained = asyncio.ensure_future(driven.queue.drained())
    await turns()
    assert not drained.done()

    codec.open = 0
    codec.queue.recount()
    await turns()

    assert drained.done()


class Bringing(Scheduling):
    """A scheduler factory that brings a codec, or fails to."""

    def __init__(self, opened: OneByOne) -> None:
        super().__init__(AllAtOnce)
        self._opened = opened

    def codec(self, context: ModelContext) -> Codec:
        self._opened.context = context
        self._opened._perhaps("codec")
        return Codec(self._opened)


def batching(root: Path) -> None:
    write_model(root, "m", f"max_batch_size: 4 dynamic_batching {{ }} {FLOATS}")


async def test_a_scheduler_brings_the_codec_of_its_versions(tmp_path: Path) -> None:
    batching(tmp_path)
    opened = OneByOne()

    async with running(tmp_path, Steered(), Bringing(opened)) as server:
        response = await server.infer(rows("m", 3))
        assert opened.context is not None
        assert opened.context.version == 1

    assert response.outputs["OUTPUT"].array.tolist() == np.float32([[3]]).tolist()
    assert opened.calls == ["codec", "arrived", "read", "completed", "end_all unload"]


async def test_a_codec_that_cannot_be_made_fails_the_load(tmp_path: Path) -> None:
    batching(tmp_path)

    async with running(tmp_path, Steered(), Bringing(OneByOne("codec"))) as server:
        (entry,) = server.index()

    assert "LookupError: codec is beyond me" in entry.reason


async def test_sequences_need_the_plugin_that_schedules_them(tmp_path: Path) -> None:
    write_model(tmp_path, "m", f"max_batch_size: 4 sequence_batching {{ }} {FLOATS}")

    async with running(tmp_path, Steered()) as server:
        (entry,) = server.index()

    assert "It comes with naiad-scheduler-sequence: pip install" in entry.reason


async def test_a_scheduler_without_a_codec_is_refused_for_sequences(tmp_path: Path) -> None:
    parameter = 'parameters { key: "scheduler" value { string_value: "default" } }'
    write_model(tmp_path, "m", f"max_batch_size: 4 sequence_batching {{ }} {parameter} {FLOATS}")

    async with running(tmp_path, Steered()) as server:
        (entry,) = server.index()

    assert "model 'm' has sequence_batching, and its scheduler 'default' has no batch codec" in entry.reason
    assert entry.state == "UNAVAILABLE"
