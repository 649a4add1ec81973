"""Calls in a turmoil: random callers that leave, deadlines, reloads and rings; nothing hangs, nothing is left over."""

import asyncio
import contextlib
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from naiad.backend import Answer, Batch
from naiad.errors import NaiadError
from naiad_kit.calls import ModelCalls
from naiad_testing.in_loop import request
from naiad_testing.loops import passing_time, until

from .models_that_call import Behaviour, Calling, output_of, reply, value, value_of

DECOUPLED = "model_transaction_policy { decoupled: true }\n"


def asks_at_random(random: Random, streams: bool) -> Behaviour:
    """A model that asks others, as many levels deep as its input says, in each of the ways there are."""

    def ask(models: ModelCalls, depth: float) -> None:
        message = request(random.choice("abcd"), depth - 1)
        how = random.choice(["infer", "begin", "forget", "stream", "break off"])
        if message.model_name == "d" or how in ("stream", "break off"):
            for response in models.stream(message):
                value(response)
                if how == "break off":
                    break
        elif how == "infer":
            models.infer(message)
        else:
            future = models.begin(message)
            if how == "begin":
                future.result()
            elif random.random() < 0.5:
                future.cancel()

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        depth = value_of(batch)
        sender = batch.sender(0) if streams else None
        for _ in range(random.randrange(3) if depth > 0 else 0):
            with contextlib.suppress(NaiadError):
                ask(models, depth)
        if sender is None:
            return output_of(depth)
        for number in range(random.randrange(40)):
            sender.send(reply(number))
        sender.send(None, final=True)
        return [None]

    return behaviour


async def leaves_early(random: Random, answer: "asyncio.Future[object]") -> None:
    for _ in range(random.randrange(200)):
        await asyncio.sleep(0)
    answer.cancel()


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_callers_do_all_calls_end_and_nothing_is_left(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    calling = Calling(tmp_path)
    for name in "abcd":
        count = f"instance_group {{ count: {random.choice([1, 2, 3])} }}\n"
        calling.add(name, asks_at_random(random, name == "d"), count + (DECOUPLED if name == "d" else ""))

    async with calling.running(model_control_mode="explicit", load_model=("*",)) as server:
        answers = []
        for number in range(60):
            deadline = monotonic() + random.choice([0.001, 60]) if random.random() < 0.3 else None
            message = request(random.choice("abc"), random.randrange(4), deadline=deadline)
            answers.append(asyncio.ensure_future(server.infer(message)))
            if random.random() < 0.3:
                answers.append(asyncio.ensure_future(leaves_early(random, answers[-1])))
            if number % 20 == 10:
                answers.append(asyncio.ensure_future(server.load(random.choice("abcd"))))
            await asyncio.sleep(0)
        with passing_time():
            outcomes = await asyncio.gather(*answers, return_exceptions=True)
            await until(lambda: not any(each.outstanding for each in server.version_reports()))

        assert await server.stop()

    wrong = [each for each in outcomes if isinstance(each, Exception) and not isinstance(each, NaiadError)]
    assert wrong == []
    assert not server.has_work()
