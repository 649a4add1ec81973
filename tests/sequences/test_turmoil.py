"""Clients that leave, executions that fail and instances that die, all at once: sums stay right, nothing hangs."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from naiad import Server
from naiad.backend import Batch
from naiad.errors import InvalidArgumentError, ModelFailedError, NaiadError
from naiad.reports import SequenceCounts
from naiad_testing.loops import until

from .serving import Listening, ask, serving, summing

FAILS, DIES = 1000, 2000


def moody(batch: Batch) -> Any:
    """Adds up, fails a batch with a FAILS in it, and dies of a DIES."""
    values = [int(request.inputs["X"].array[0, 0]) for request in batch.requests]
    if DIES in values:
        raise SystemExit("it has had enough")
    if FAILS in values:
        raise ArithmeticError("not this one")
    return summing(batch)


async def client(server: Server, name: str, random: Random, seen: Counter[str]) -> None:
    """Sends sequences with several requests on their way at a time; a sequence that breaks is left behind."""
    for number in range(6):
        who, total = f"{name}.{number}", 0
        ended = False
        for _ in range(random.randrange(1, 6)):
            values = [random.randrange(1, 9) for _ in range(random.randrange(1, 4))]
            if random.random() < 0.1:
                values = [FAILS]
            elif random.random() < 0.01:
                values = [DIES]
            ended = random.random() < 0.2
            flags = ["start" if total == 0 and at == 0 else "" for at in range(len(values))]
            flags[-1] += "end" if ended else ""
            tasks = [asyncio.ensure_future(ask(server, *each)) for each in zip(values, [who] * 9, flags, strict=False)]
            if random.random() < 0.15:
                await asyncio.sleep(random.random() * 0.002)
                tasks[random.randrange(len(tasks))].cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            if not judged(outcomes, values, total, seen):
                break
            total = next((each for each in reversed(outcomes) if isinstance(each, int)), total)
            if ended:
                break


def judged(results: list[Any], values: list[int], total: int, seen: Counter[str]) -> bool:
    """Whether the sequence can go on; the sums that came back must be right as far as nothing broke."""
    for each, value in zip(results, values, strict=True):
        seen[type(each).__name__] += 1
        if isinstance(each, ModelFailedError):  # its batch failed, perhaps for another's sake, and counts for nothing
            continue
        if isinstance(each, BaseException):
            expected = (asyncio.CancelledError, NaiadError)
            assert isinstance(each, expected), each
            if isinstance(each, InvalidArgumentError):
                assert "must specify the START flag" in str(each)
            return False
        total += value
        assert each == total, f"{each} instead of {total}"
    return any(isinstance(each, int) for each in results)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "strategy",
    ["direct { }", "direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 0.5 }", "oldest { }"],
)
async def test_sums_stay_right_whatever_happens_to_others(tmp_path: Path, strategy: str, seed: int) -> None:
    backend = Listening(moody)
    seen: Counter[str] = Counter()
    async with serving(
        tmp_path, backend, f"{strategy} max_sequence_idle_microseconds: 50000", "instance_group { count: 2 }"
    ) as server:
        await asyncio.gather(*(client(server, str(n), Random(f"{seed}.{n}"), seen) for n in range(24)))
        await until(lambda: next(server.version_reports()).outstanding == 0)
        await until(lambda: next(server.version_reports()).sequences == SequenceCounts(live=0, backlog=0))

        await until(lambda: server.model_ready("m").ready)
        assert await ask(server, 3, flags="start end") == 3

    assert seen["int"] > 50
    report = Counter(who for who, _ in backend.heard)
    assert set(report.values()) == {1}
