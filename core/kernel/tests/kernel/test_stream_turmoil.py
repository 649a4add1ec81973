"""Everything at once with streams: clients that leave or dawdle, models that fail, die and forget, reloads."""

import asyncio
import gc
import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

import pytest

from naiad import Server
from naiad._engine.streams import ResponseStream
from naiad.backend import Answer, Batch, Reply, Sender
from naiad.default_scheduler import FifoScheduler
from naiad.errors import NaiadError
from naiad_testing.in_loop import rows, running, write_model
from naiad_testing.loops import jump, turns
from naiad_testing.scheduling import AllAtOnce, Ordered, Scheduling
from naiad_testing.steered import Steered, SteeredInstance

from .streaming import DECOUPLED, batched

INSIDE, LATER, TOGETHER, RAISES, FORGETS, DIES, ANSWERS = map(float, range(7))
KINDS = {INSIDE: 9, LATER: 9, TOGETHER: 9, RAISES: 2, FORGETS: 3, DIES: 1, ANSWERS: 4}
"""What requests make the model do, and how often."""
CONFIG = f"max_batch_size: 64 dynamic_batching {{ }} instance_group {{ count: 2 }} {DECOUPLED}"
COUNT = 150
"""So many responses each request gets: more than may be on their way."""


class Model:
    """What becomes of a request depends on its value; it has threads of its own."""

    def __init__(self, concurrency: int) -> None:
        self._pool = ThreadPoolExecutor(6)
        self._threads: list[threading.Thread] = []
        self._concurrency = concurrency

    def wait(self) -> None:
        """Return when all its threads have ended."""
        self._pool.shutdown()
        for thread in self._threads:
            thread.join()

    def execute(self, batch: Batch) -> Answer | Future[Answer]:
        if self._concurrency == 1 or DIES in batch.input("INPUT"):
            return self._answer(batch)
        return self._pool.submit(self._answer, batch)

    def _answer(self, batch: Batch) -> Answer:
        return [self._serve(batch, index) for index in range(len(batch.requests))]

    def _serve(self, batch: Batch, index: int) -> Reply | None:
        kind = float(batch.requests[index].inputs["INPUT"].array[0, 0])
        if kind == ANSWERS:
            return batched(kind)
        sender = batch.sender(index)
        if kind == INSIDE:
            stream(sender)
        elif kind == LATER:
            self._start(lambda: stream(sender))
        elif kind == TOGETHER:
            self._together(sender)
        elif kind == RAISES:
            sender.send(batched(0))
            raise ValueError("hurt by a request")
        elif kind == DIES:
            sender.send(batched(0))
            raise SystemExit("killed by a request")
        return None

    def _together(self, sender: Sender) -> None:
        """Two threads send, and the later one says that all is sent."""
        unread = [None, None]

        def send() -> None:
            for value in range(COUNT // 2):
                sender.send(batched(value))
            unread.pop()
            if not unread:
                sender.send(None, final=True)

        for _ in range(2):
            self._start(send)

    def _start(self, act: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=act))
        self._threads[-1].start()


def stream(sender: Sender) -> None:
    for value in range(COUNT):
        if not sender.send(batched(value)):
            break
    sender.send(None, final=True)


async def outcome_of(server: Server, value: float, chance: random.Random) -> tuple[int, str]:
    """How many responses a client got, and the kind of the last of them; "" for one that left."""
    leaves_after = chance.choice([COUNT + 9, COUNT + 9, 0, 5, 100])
    dawdles = chance.random() < 0.3
    count = 0
    try:
        async with aclosing(server.stream(rows("m", value))) as responses:
            async for _ in responses:
                if count == leaves_after:
                    return count, ""
                count += 1
                if dawdles and count % 10 == 0:
                    await turns(5)
    except NaiadError as error:
        return count, type(error).__name__
    return count, "the end"


@pytest.mark.parametrize("scheduler", [FifoScheduler, AllAtOnce, Ordered])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_whatever_happens_every_stream_ends_and_the_server_stops(
    tmp_path: Path, scheduler: type[FifoScheduler], concurrency: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "naiad.model")  # what is logged would keep senders alive, by its traceback
    chance = random.Random(concurrency)
    model = Model(concurrency)
    backend = Steered(execute=model.execute, instantiate=lambda placement: SteeredInstance(backend, concurrency))
    write_model(tmp_path, "m", CONFIG)
    recorded: list[tuple[float, int, str]] = []
    threads = set(threading.enumerate())

    async with running(
        tmp_path, backend, Scheduling(scheduler), model_control_mode="explicit", load_model=("m",)
    ) as server:
        for round_number in range(4):
            kinds = chance.choices(list(KINDS), list(KINDS.values()), k=25)
            clients = [outcome_of(server, kind, chance) for kind in kinds]
            (tmp_path / "m" / "1" / "weights").write_text(str(round_number // 2))
            _, *outcomes = await asyncio.gather(server.load("m"), *clients)
            recorded += [(kind, *outcome) for kind, outcome in zip(kinds, outcomes, strict=True)]  # type: ignore[misc]
            await jump(40)
        assert await server.stop()
    model.wait()

    assert {count for kind, count, last in recorded if kind <= TOGETHER and last == "the end"} == {COUNT + 1}
    assert {last for *_, last in recorded} >= {"the end", "", "ModelFailedError"}
    assert {last for *_, last in recorded} <= {
        "the end",
        "",
        "ModelFailedError",
        "WorkerDiedError",
        "ModelNotReadyError",
    }
    for _ in range(2):  # errors keep what raised them in circles, and senders that are dropped there come to life again
        gc.collect()
        await turns()
    assert [each for each in gc.get_objects() if isinstance(each, ResponseStream)] == []
    for thread in set(threading.enumerate()) - threads:
        if thread.name.startswith("naiad-m"):
            thread.join(10)
            assert not thread.is_alive(), thread
