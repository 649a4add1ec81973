"""The metrics that models make themselves."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from naiad._lifecycle.loading import SECONDS_TO_CLOSE
from naiad.backend import Answer, Batch, ModelContext, Placement
from naiad_kit.model_metrics import registry_of
from naiad_testing.in_loop import off_the_loop, request, write_model
from naiad_testing.loops import jump, until
from naiad_testing.metric_values import values_of
from naiad_testing.steered import Steered, SteeredModel

from .metered import running


class Counting(SteeredModel):
    """A model that counts its batches."""

    def __init__(self, backend: Steered, context: ModelContext) -> None:
        super().__init__(backend)
        self._batches = registry_of(context).family("batches", "Batches so far", "counter").metric({"of": "Counting"})

    def instantiate(self, placement: Placement) -> Any:
        counter = self._batches

        class Instance:
            def execute(self, batch: Batch) -> Answer:
                counter.increment()
                return {"OUTPUT": batch.input("INPUT")}

            def close(self) -> None:
                return None

        return Instance()


async def test_what_a_model_counts_is_reported_until_it_is_closed(tmp_path: Path) -> None:
    backend = Steered(load=lambda context: Counting(backend, context))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend, model_control_mode="explicit", load_model=("m",)) as server:
        await server.infer(request("m", 1))
        counted = values_of(server)["batches"]
        await server.unload("m")
        await until(lambda: "batches" not in values_of(server))

    assert counted == {frozenset({("of", "Counting")}): 1}


async def test_a_model_that_fails_to_load_leaves_no_metrics(tmp_path: Path) -> None:
    def load(context: ModelContext) -> SteeredModel:
        registry_of(context).family("loads", "", "counter").metric().increment()
        raise ValueError("no")

    write_model(tmp_path, "m")

    async with running(tmp_path, Steered(load=load)) as server:
        assert "loads" not in values_of(server)


@pytest.mark.parametrize("late", [False, True], ids=["before the next attempt", "after the next attempt"])
async def test_a_failed_attempt_to_load_closes_no_metric_of_the_next(tmp_path: Path, late: bool) -> None:
    closing, gate, closed = threading.Event(), threading.Event(), threading.Event()
    attempts: list[Counting] = []

    class Failing(Counting):
        def instantiate(self, placement: Placement) -> Any:
            raise OSError("the network drive sleeps")

        def close(self) -> None:
            closing.set()
            gate.wait(10)
            closed.set()

    def load(context: ModelContext) -> Counting:
        attempts.append((Counting if attempts else Failing)(backend, context))
        return attempts[-1]

    backend = Steered(load=load)
    write_model(tmp_path, "m")
    options = {"model_control_mode": "explicit", "model_load_retry_count": 1}

    async with running(tmp_path, backend, **options) as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(lambda: closing.wait(10))
        if late:
            await jump(SECONDS_TO_CLOSE + 1)
        else:
            gate.set()
        await loading
        gate.set()
        await off_the_loop(lambda: closed.wait(10))
        await until(lambda: all(thread.name != "naiad-close-m" for thread in threading.enumerate()))
        await server.infer(request("m", 1))
        counted = values_of(server)["batches"]

    assert (len(attempts), counted) == (2, {frozenset({("of", "Counting")}): 1})


async def test_a_model_cannot_take_a_name_of_the_servers(tmp_path: Path) -> None:
    def load(context: ModelContext) -> SteeredModel:
        registry_of(context).family("nv_inference_count", "", "counter")
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        assert "'nv_inference_count'" in server.index()[0].reason
