"""Memory: whatever becomes of a request, its tensors and its answer die by reference counts alone."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import naiad_loop_handoff
from naiad import Server
from naiad.backend import Answer, Batch, Reply
from naiad.errors import InvalidArgumentError, NaiadError
from naiad.types import Request
from naiad_testing.in_loop import request, rows, running, write_model
from naiad_testing.leading import lead, led_by
from naiad_testing.loops import JumpingLoop, jump, until
from naiad_testing.retention import PayloadWatch, freed_by_reference_counts
from naiad_testing.scheduling import Scheduling
from naiad_testing.steered import Steered

from .schedulers import Pairs
from .streaming import DECOUPLED, reply

RAISES, REFUSES, EXITS, WAITS, BAD_SHAPE, FUTURE = -1.0, -2.0, -3.0, -4.0, -5.0, -6.0
LONG = 10.0


@pytest.fixture(autouse=True)
def unlogged() -> Iterator[None]:
    """Nothing is logged, for pytest keeps what is, with the frames of its traceback."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@dataclass
class Scene:
    """A server with the models m, streams and pairs, and requests to them whose payloads must die."""

    server: Server
    watch: PayloadWatch
    waiting: threading.Semaphore
    gate: threading.Event = field(default_factory=threading.Event)

    def request(self, value: float = 1.0, model: str = "m", **fields: Any) -> Request:
        return self.watch.watch_request(request(model, value, **fields))

    async def infer(self, request: Request) -> None:
        with suppress(NaiadError):
            self.watch.watch_outcome(await self.server.infer(request))

    async def all_dead(self) -> None:
        """Let the loop go on until no payload lives, or for long."""
        late = monotonic() + LONG
        await until(lambda: not self.watch.alive() or monotonic() > late)


def execute(batch: Batch) -> Answer:
    value = float(batch.requests[0].inputs["INPUT"].array.flat[0])
    if value == RAISES:
        raise ValueError("the model raised")
    if value == REFUSES:
        raise InvalidArgumentError("the model refused")
    if value == EXITS:
        raise SystemExit("the model left")
    if value == BAD_SHAPE:
        return {"OUTPUT": batch.input("INPUT").reshape(1, -1)}
    return {"OUTPUT": batch.input("INPUT") + 1}


async def answered(scene: Scene) -> None:
    await scene.infer(scene.request())


async def submitted(scene: Scene) -> None:
    over: list[bool] = []
    scene.server.submit(scene.request(), lambda outcome: over.append(bool(scene.watch.watch_outcome(outcome))))
    await until(lambda: over)


async def unknown_model(scene: Scene) -> None:
    await scene.infer(scene.request(model="ghost"))


async def unknown_input(scene: Scene) -> None:
    message = scene.request()
    message.inputs = {"OTHER": message.inputs["INPUT"]}
    await scene.infer(message)


async def late(scene: Scene) -> None:
    await scene.infer(scene.request(deadline=monotonic() - 1))


def asking_for(value: float) -> Callable[[Scene], Awaitable[None]]:
    async def ask(scene: Scene) -> None:
        await scene.infer(scene.request(value))

    return ask


async def cancelled_while_it_waits(scene: Scene) -> None:
    call = scene.server.submit(scene.request(), lambda outcome: None)
    call.cancel()
    del call
    await scene.infer(scene.request())


async def task_cancelled(scene: Scene) -> None:
    task = asyncio.ensure_future(scene.infer(scene.request(model="holds")))
    await asyncio.to_thread(scene.waiting.acquire)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    scene.gate.set()


async def deadline_while_it_executes(scene: Scene) -> None:
    task = asyncio.ensure_future(scene.infer(scene.request(model="holds", deadline=monotonic() + 3600)))
    await asyncio.to_thread(scene.waiting.acquire)
    for version in scene.server._models.serving():
        if version.name == "holds":
            queue = version._queue  # type: ignore[attr-defined]
            for call in list(queue._executing.values()):
                queue._expire(call)
            del call, queue
    del version
    await task
    scene.gate.set()


async def stream_read(scene: Scene) -> None:
    async with aclosing(scene.server.stream(scene.request(3.0, "streams"))) as responses:
        async for response in responses:
            scene.watch.watch_outcome(response)


async def stream_left(scene: Scene) -> None:
    async with aclosing(scene.server.stream(scene.request(1e6, "streams"))) as responses:
        async for response in responses:
            scene.watch.watch_outcome(response)
            break


async def stream_that_raises(scene: Scene) -> None:
    with suppress(NaiadError):
        async with aclosing(scene.server.stream(scene.request(RAISES, "streams"))) as responses:
            async for response in responses:
                scene.watch.watch_outcome(response)


async def stream_of_a_plain_model(scene: Scene) -> None:
    async for response in scene.server.stream(scene.request()):
        scene.watch.watch_outcome(response)


async def batch_with_one_error(scene: Scene) -> None:
    message = [scene.watch.watch_request(rows("pairs", value)) for value in (1.0, REFUSES)]
    await asyncio.gather(*map(scene.infer, message))


async def batch_that_fails(scene: Scene) -> None:
    message = [scene.watch.watch_request(rows("pairs", value)) for value in (RAISES, 1.0)]
    await asyncio.gather(*map(scene.infer, message))


async def stopped(scene: Scene) -> None:
    task = asyncio.ensure_future(scene.infer(scene.request(model="holds")))
    waits = asyncio.ensure_future(scene.infer(scene.request(model="holds")))
    await asyncio.to_thread(scene.waiting.acquire)
    stopping = asyncio.ensure_future(scene.server.stop())
    while isinstance(asyncio.get_running_loop(), JumpingLoop) and not waits.done():
        await jump(EXIT_SECONDS)
    await waits
    scene.gate.set()
    await asyncio.gather(task, stopping)


async def answered_to_a_deliver_that_raises(scene: Scene) -> None:
    def deliver(outcome: object) -> None:
        scene.watch.watch_outcome(outcome)
        raise ValueError("the caller broke")

    scene.server.submit(scene.request(), deliver)
    await scene.infer(scene.request())


SCENES: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "answered": answered,
    "submitted": submitted,
    "unknown model": unknown_model,
    "unknown input": unknown_input,
    "late": late,
    "raises": asking_for(RAISES),
    "refused by the model": asking_for(REFUSES),
    "worker dies": asking_for(EXITS),
    "bad shape": asking_for(BAD_SHAPE),
    "cancelled in the queue": cancelled_while_it_waits,
    "task cancelled": task_cancelled,
    "deadline in execution": deadline_while_it_executes,
    "stream read": stream_read,
    "stream left": stream_left,
    "stream raises": stream_that_raises,
    "stream of one": stream_of_a_plain_model,
    "one error in a batch": batch_with_one_error,
    "batch fails": batch_that_fails,
    "stopped": stopped,
    "deliver raises": answered_to_a_deliver_that_raises,
}


def streams(batch: Batch) -> Answer:
    value = batch.input("INPUT")[0]
    sender = batch.sender(0)
    for number in range(int(max(value, 1))):
        if not sender.send(reply(number)):
            break
    if value == RAISES:
        raise ValueError("the stream raised")
    sender.send(None, final=True)
    return [None]


def pairs(batch: Batch) -> Answer:
    values = [float(each.inputs["INPUT"].array.flat[0]) for each in batch.requests]
    if RAISES in values:
        raise ValueError("the batch raised")
    return [
        InvalidArgumentError("refused") if value == REFUSES else Reply({"OUTPUT": each.inputs["INPUT"].array + 1})
        for value, each in zip(values, batch.requests, strict=True)
    ]


EXIT_SECONDS = 0.2
"""How long a stop waits for what executes; the scene `stopped` waits for all of it."""
PAIRS = "max_batch_size: 4 dynamic_batching { }\n"
ROWS = """
input { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }
"""


def models(root: Path, waiting: threading.Semaphore, gate: threading.Event) -> list[object]:
    def holds(batch: Batch) -> Answer:
        waiting.release()
        assert gate.wait(30)
        return execute(batch)

    write_model(root, "m", backend="plain")
    write_model(root, "streams", DECOUPLED, backend="streams")
    write_model(root, "holds", backend="holds")
    write_model(root, "pairs", ROWS + PAIRS, backend="pairs")
    return [
        Steered("plain", execute=execute),
        Steered("streams", execute=streams),
        Steered("holds", execute=holds),
        Steered("pairs", execute=pairs),
        Scheduling(Pairs),
    ]


@pytest.mark.parametrize("name", SCENES)
async def test_nothing_of_a_request_outlives_it(tmp_path: Path, name: str) -> None:
    waiting, gate = threading.Semaphore(0), threading.Event()
    async with running(tmp_path, *models(tmp_path, waiting, gate), exit_timeout_secs=EXIT_SECONDS) as server:
        await server.infer(request("m", 1.0))
        with freed_by_reference_counts() as watch:
            scene = Scene(server, watch, waiting, gate)
            await SCENES[name](scene)
            await scene.all_dead()

    assert watch.watched


@pytest.mark.parametrize("name", SCENES)
def test_nor_where_a_model_s_thread_runs_the_loop(tmp_path: Path, name: str) -> None:
    waiting, gate = threading.Semaphore(0), threading.Event()

    async def body(server: Server) -> None:
        await led_by(server, "m")
        with freed_by_reference_counts() as watch:
            scene = Scene(server, watch, waiting, gate)
            await SCENES[name](scene)
            await scene.all_dead()
        assert watch.watched

    lead(tmp_path, body, naiad_loop_handoff, *models(tmp_path, waiting, gate), exit_timeout_secs=EXIT_SECONDS)
