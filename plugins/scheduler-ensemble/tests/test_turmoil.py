"""Ensembles under callers that leave, models that fail and reloads: every caller is answered, and nothing is left."""

import asyncio
import random
import time

import numpy as np
import pytest

from naiad import Server
from naiad.backend import Answer, Batch
from naiad.errors import NaiadError
from naiad_testing.loops import until

from .parts import Parts, add, ask, plus, times


def moody(batch: Batch) -> Answer:
    """Fails where the first element is divisible by seven."""
    x = batch.input("x")
    if int(x.flat[0]) % 7 == 0:
        raise ValueError("divisible by seven")
    return {"y": x + np.float32(0)}


class Crowd:
    """Callers that ask, read and leave as chance has it; `outcomes` counts how they ended."""

    def __init__(self, server: Server, chance: random.Random) -> None:
        self.outcomes = {"answered": 0, "failed": 0, "left": 0}
        self._server = server
        self._chance = chance

    async def one(self, number: int) -> None:
        """One caller."""
        task = asyncio.ensure_future(self._chance.choice([self._single, self._stream])(number))
        if self._chance.random() < 0.3:
            for _ in range(self._chance.randrange(20)):
                await asyncio.sleep(0)
            task.cancel()
        try:
            await task
            self.outcomes["answered"] += 1
        except NaiadError:
            self.outcomes["failed"] += 1
        except asyncio.CancelledError:
            self.outcomes["left"] += 1

    async def _single(self, number: int) -> None:
        deadline = time.monotonic() + self._chance.choice([0.0005, 5])
        await self._server.infer(ask("d", number, deadline=deadline))

    async def _stream(self, number: int) -> None:
        async for _ in self._server.stream(ask("s", number)):
            if self._chance.random() < 0.1:
                break


def write(parts: Parts) -> None:
    """The ensembles d, whose branches join, and s, which streams."""
    parts.add("one", "x", "y", plus(1), "instance_group { count: 2 }")
    parts.add("moody", "x", "y", moody)
    parts.add("add", "a b", "y", add)
    parts.add("three", "x", "y", times(3), "model_transaction_policy { decoupled: true } instance_group { count: 2 }")
    parts.join(
        "d", "A", "D", "add a=B b=C -> y=D", "one x=A -> y=B", "moody x=A -> y=C", scheduling="max_inflight_requests: 3"
    )
    parts.join("s", "A", "C", "three x=A -> y=B", "one x=B -> y=C", scheduling="max_inflight_requests: 2")


@pytest.mark.parametrize("seed", range(3))
async def test_everybody_is_answered_and_nothing_is_left(parts: Parts, seed: int) -> None:
    write(parts)
    chance = random.Random(seed)

    async with parts.serving(model_control_mode="explicit", load_model=("*",)) as server:
        crowd = Crowd(server, chance)
        callers = []
        for number in range(300):
            callers.append(asyncio.ensure_future(crowd.one(number)))
            if number % 60 == 30:
                name = chance.choice(["one", "moody", "d", "three"])
                (parts.root / name / "1" / "generation").write_text(str(number))
                await server.load(name)
            await asyncio.sleep(0)
        await asyncio.gather(*callers)
        await until(lambda: not any(each.outstanding for each in server.version_reports()))
        under_way = [parts.ensembles[name]._ensemble.inflight._under_way for name in ("d", "s")]
        assert await server.stop()

    assert sum(crowd.outcomes.values()) == 300
    assert crowd.outcomes["answered"] > 0
    assert under_way == [[0, 0, 0], [0, 0]]
