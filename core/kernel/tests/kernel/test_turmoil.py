"""Everything at once: clients that leave, models that fail, workers that die, reloads; each call still ends once."""

import asyncio
import random
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from naiad import Server
from naiad.backend import Answer, Batch
from naiad.default_scheduler import FifoScheduler
from naiad.errors import ModelFailedError, ModelNotReadyError, NaiadError, WorkerDiedError
from naiad.types import Response
from naiad_testing.in_loop import FLOATS, rows, running, write_model
from naiad_testing.loops import jump, turns
from naiad_testing.scheduling import AllAtOnce, Scheduling
from naiad_testing.steered import Steered, SteeredInstance

FINE, RAISES, DIES = 1.0, 2.0, 3.0
CONFIG = f"max_batch_size: 64 dynamic_batching {{ }} instance_group {{ count: 2 }} {FLOATS}"


def answer(batch: Batch) -> Answer:
    values = set(batch.input("INPUT").ravel().tolist())
    if DIES in values:
        raise SystemExit("killed by a request")
    if RAISES in values:
        raise ValueError("hurt by a request")
    return {"OUTPUT": batch.input("INPUT")}


async def outcome_of(server: Server, value: float, leaves_after: int | None) -> Response | NaiadError | None:
    """What a client gets; None for one that left."""
    call = asyncio.ensure_future(server.infer(rows("m", value)))
    if leaves_after is not None:
        await turns(leaves_after)
        call.cancel()
    try:
        return await call
    except NaiadError as error:
        return error
    except asyncio.CancelledError:
        return None


@pytest.mark.parametrize("scheduler", [FifoScheduler, AllAtOnce])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_whatever_happens_every_client_is_notified_and_the_server_stops(
    tmp_path: Path, scheduler: type[FifoScheduler], concurrency: int
) -> None:
    chance = random.Random(concurrency)
    pool = ThreadPoolExecutor(2)

    def execute(batch: Batch) -> Answer | Future[Answer]:
        if concurrency == 1 or DIES in batch.input("INPUT"):
            return answer(batch)
        return pool.submit(answer, batch)

    backend = Steered(execute=execute, instantiate=lambda placement: SteeredInstance(backend, concurrency))
    write_model(tmp_path, "m", CONFIG)
    recorded: list[Response | NaiadError | None] = []

    async with running(
        tmp_path, backend, Scheduling(scheduler), model_control_mode="explicit", load_model=("m",)
    ) as server:
        for round_number in range(12):
            values = chance.choices([FINE, RAISES, DIES], [40, 2, 1], k=20)
            clients = [outcome_of(server, value, chance.choice([None] * 4 + [chance.randrange(4)])) for value in values]
            (tmp_path / "m" / "1" / "weights").write_text(str(round_number // 3))
            _, *outcomes = await asyncio.gather(server.load("m"), *clients)
            recorded += outcomes  # type: ignore[arg-type]
            await jump(40)
        assert await server.stop()
    pool.shutdown()

    kinds = {type(outcome) for outcome in recorded}
    assert kinds <= {Response, type(None), ModelFailedError, WorkerDiedError, ModelNotReadyError}
    assert kinds >= {Response, WorkerDiedError}
    assert len(recorded) == 12 * 20
