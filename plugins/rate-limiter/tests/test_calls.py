"""Models that call one another and share a resource: a caller gives up its units, so that no call waits for ever."""

import asyncio
import threading

import pytest

from naiad.backend import Answer, Batch
from naiad_kit.calls import ModelCalls
from naiad_kit.metrics import MetricsApi

from .models import Behaviour, Models, double, group, output, request, units, value, value_of


def sharing(count: int, needed: int) -> str:
    """So many instances that each need so many units of R."""
    return group(units(needed), count=count)


class Meter:
    """Counts the units that executions compute with; `most` is what it ever was."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def add(self, units: int) -> None:
        with self._lock:
            self._now += units
            self.most = max(self.most, self._now)


def asks(name: str, meter: Meter, units: int = 1) -> Behaviour:
    """A model that computes, asks another, and computes on."""

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        meter.add(units)
        meter.add(-units)
        answer = models.infer(request(name, value_of(batch)))
        meter.add(units)
        meter.add(-units)
        return output(value(answer) + 1)

    return behaviour


async def test_a_caller_lends_what_the_called_model_needs(models: Models) -> None:
    models.add("inner", double, sharing(1, 1))
    models.add("outer", asks("inner", Meter()), sharing(1, 1))

    async with models.running(rate_limit="execution_count") as server:
        answer = await server.infer(request("outer", 4))

    assert value(answer) == 9


async def test_several_calls_at_once_are_answered_too(models: Models) -> None:
    def asks_three(batch: Batch, models: ModelCalls) -> Answer:
        begun = [models.begin(request("inner", number)) for number in (1, 2, 3)]
        return output(*(value(future.result()) for future in begun))

    models.add("inner", double, sharing(2, 1))
    models.add("outer", asks_three, sharing(1, 1))

    async with models.running(rate_limit="execution_count") as server:
        answer = await server.infer(request("outer", 0))

    assert answer.outputs["OUTPUT"].array.tolist() == [2, 4, 6]


@pytest.mark.parametrize("limit", [(), ("R:3",)], ids=["default", "three units"])
async def test_chains_of_models_all_end_and_never_compute_with_more_than_there_is(
    models: Models, limit: tuple[str, ...]
) -> None:
    meter = Meter()
    models.add("last", double, sharing(2, 2))
    models.add("middle", asks("last", meter, 2), sharing(3, 2))
    models.add("first", asks("middle", meter), sharing(4, 1))

    async with models.running(rate_limit="execution_count", rate_limit_resource=limit) as server:
        names = ["first", "middle", "first", "last"] * 20
        answers = await asyncio.gather(*(server.infer(request(name, 1)) for name in names))
        collected = server.service(MetricsApi).collect()
        used = next(family for family in collected if family.name == "naiad_rate_limit_in_use")

    assert [value(answer) for answer in answers] == [4, 3, 4, 2] * 20
    assert meter.most <= (3 if limit else 2)
    assert [sample.value for sample in used.samples] == [0]


async def test_a_caller_whose_call_fails_goes_on_with_what_it_needs(models: Models) -> None:
    def asks_a_missing_model(batch: Batch, models: ModelCalls) -> Answer:
        try:
            models.infer(request("missing", 1))
        except Exception:  # noqa: BLE001
            return output(value_of(batch))
        return output(-1)

    models.add("outer", asks_a_missing_model, sharing(1, 1))

    async with models.running(rate_limit="execution_count") as server:
        answers = [value(await server.infer(request("outer", number))) for number in (1, 2, 3)]

    assert answers == [1, 2, 3]


async def test_a_caller_that_is_cancelled_gives_back_what_it_lent(models: Models) -> None:
    gate, begun = threading.Event(), threading.Event()

    def waits(batch: Batch, models: ModelCalls) -> Answer:
        begun.set()
        gate.wait(10)
        return double(batch, models)

    models.add("slow", waits, sharing(1, 1))
    models.add("outer", asks("slow", Meter()), sharing(1, 1))

    async with models.running(rate_limit="execution_count") as server:
        leaving = asyncio.ensure_future(server.infer(request("outer", 1)))
        await asyncio.to_thread(begun.wait, 10)
        leaving.cancel()
        gate.set()
        answer = await server.infer(request("outer", 2))

    assert value(answer) == 5
