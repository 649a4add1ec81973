"""Models that load, unload and ask for other models, at any time of their own lives."""

import asyncio
import itertools
import threading
from pathlib import Path

import pytest

from naiad.backend import ModelContext, Placement
from naiad.errors import InvalidArgumentError, NaiadError, ShuttingDownError, UnsupportedError
from naiad_kit.calls import models_of
from naiad_testing.in_loop import FLOATS, off_the_loop, request, write_model
from naiad_testing.steered import Steered, SteeredInstance, SteeredModel

from .models_that_call import Calling, double, value
from .serving import running

EXPLICIT = {"model_control_mode": "explicit"}


class Loading:
    """Models that load others while they are loaded: `asks` says which model loads which, `errors` what it raised."""

    def __init__(self, root: Path, asks: dict[str, str]) -> None:
        self.errors: dict[str, NaiadError] = {}
        self.backend = Steered(load=self._load)
        self._asks = asks
        for name in {*asks, *asks.values()}:
            write_model(root, name)

    def _load(self, context: ModelContext) -> SteeredModel:
        loading, name = self, context.config.name

        class Model(SteeredModel):
            def instantiate(self, placement: Placement) -> SteeredInstance:
                dependency = loading._asks.get(name)
                if dependency is not None:
                    try:
                        models_of(context).load(dependency)
                    except NaiadError as error:
                        loading.errors[name] = error
                        raise
                return SteeredInstance(loading.backend)

        return Model(self.backend)


async def test_a_model_is_loaded_by_a_model_that_is_loaded_with_one_load_at_a_time(tmp_path: Path) -> None:
    loading = Loading(tmp_path, {"a": "b", "b": "c"})

    async with running(tmp_path, loading.backend, **EXPLICIT, model_load_thread_count=1) as server:
        await server.load("a")

        assert [entry.state for entry in server.index()] == ["READY"] * 3


@pytest.mark.parametrize("threads", [1, 4])
async def test_backends_load_models_within_loads_deeper_than_there_are_threads(tmp_path: Path, threads: int) -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    following = dict(itertools.pairwise(names))

    def load(context: ModelContext) -> SteeredModel:
        dependency = following.get(context.config.name)
        if dependency is not None:
            models_of(context).load(dependency)
        return SteeredModel(backend)

    backend = Steered(load=load)
    for name in names:
        write_model(tmp_path, name)

    async with running(tmp_path, backend, **EXPLICIT, model_load_thread_count=threads) as server:
        await asyncio.wait_for(server.load("a"), 10)

        assert [entry.state for entry in server.index()] == ["READY"] * 6


async def test_many_loads_that_each_load_another_share_few_threads(tmp_path: Path) -> None:
    def load(context: ModelContext) -> SteeredModel:
        outer, _, number = context.config.name.partition("-")
        if outer == "outer":
            models_of(context).load(f"inner-{number}")
        return SteeredModel(backend)

    backend = Steered(load=load)
    for number in range(6):
        write_model(tmp_path, f"outer-{number}")
        write_model(tmp_path, f"inner-{number}")

    async with running(tmp_path, backend, **EXPLICIT, model_load_thread_count=2) as server:
        await asyncio.wait_for(asyncio.gather(*(server.load(f"outer-{number}") for number in range(6))), 10)

        assert [entry.state for entry in server.index()] == ["READY"] * 12


async def test_models_that_all_load_the_same_one_wait_for_it_together(tmp_path: Path) -> None:
    loading = Loading(tmp_path, {"a": "shared", "b": "shared", "c": "shared"})

    async with running(tmp_path, loading.backend, **EXPLICIT, load_model=("*",), model_load_thread_count=2) as server:
        assert [entry.state for entry in server.index()] == ["READY"] * 4


@pytest.mark.parametrize("asks", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a"}])
async def test_models_that_load_each_other_in_a_ring_are_refused(tmp_path: Path, asks: dict[str, str]) -> None:
    loading = Loading(tmp_path, asks)

    async with running(tmp_path, loading.backend, **EXPLICIT) as server:
        with pytest.raises(InvalidArgumentError, match="is being loaded and asks to load or unload 'a'"):
            await server.load("a")

    assert "which waits for that load to end" in str(loading.errors["a"])


async def test_a_model_that_serves_may_load_itself_anew(tmp_path: Path) -> None:
    calling = Calling(tmp_path)
    calling.add("double", double)

    async with calling.running(**EXPLICIT, load_model=("*",)) as server:
        models = models_of(calling.contexts["double"])
        await asyncio.to_thread(models.load, "double")

        assert value(await server.infer(request("double", 2))) == 4


async def test_a_model_unloads_another_and_asks_whether_it_is_ready(tmp_path: Path) -> None:
    calling = Calling(tmp_path)
    for name in ("double", "other"):
        calling.add(name, double)

    async with calling.running(**EXPLICIT, load_model=("*",)):
        models = models_of(calling.contexts["double"])
        before = await asyncio.to_thread(models.ready, "other")
        await asyncio.to_thread(models.unload, "other")
        after = [
            await asyncio.to_thread(models.ready, *response) for response in (("other",), ("double", 7), ("nobody",))
        ]

    assert (before, after) == (True, [False, False, False])


async def test_the_event_loop_waits_for_no_load(tmp_path: Path) -> None:
    calling = Calling(tmp_path)
    calling.add("double", double)

    async with calling.running(**EXPLICIT, load_model=("*",)):
        models = models_of(calling.contexts["double"])

        for ask in (models.load, models.unload, models.ready):
            with pytest.raises(UnsupportedError, match="on the event loop"):
                ask("double")


async def test_a_model_that_unloads_others_when_it_is_closed_does_not_hold_up_a_server_that_stops(
    tmp_path: Path,
) -> None:
    recorded: list[str] = []

    def load(context: ModelContext) -> SteeredModel:
        class Instance(SteeredInstance):
            def close(self) -> None:
                models_of(context).unload("other")
                recorded.append("unloaded")
                for ask in (models_of(context).load, lambda name: models_of(context).infer(request(name, 1))):
                    try:
                        ask("other")
                    except NaiadError as error:
                        recorded.append(type(error).__name__)

        class Model(SteeredModel):
            def instantiate(self, placement: Placement) -> Instance:
                return Instance(backend)

        return Model(backend)

    backend = Steered("closing", load=load)
    plain = Steered()
    write_model(tmp_path, "closing", FLOATS, "closing")
    write_model(tmp_path, "other")

    async with running(tmp_path, backend, plain, **EXPLICIT, load_model=("*",)) as server:
        assert await server.stop()

    assert recorded[:2] == ["unloaded", ShuttingDownError.__name__]
    assert len(recorded) == 3


async def test_a_load_that_waits_is_reported_when_the_server_stops(tmp_path: Path) -> None:
    loads, gate = threading.Event(), threading.Event()

    def takes_long(context: ModelContext) -> SteeredModel:
        loads.set()
        assert gate.wait(10)
        return SteeredModel(slow)

    calling = Calling(tmp_path)
    calling.add("double", double)
    slow = Steered("slow", load=takes_long)
    write_model(tmp_path, "slow", FLOATS, "slow")

    async with calling.running(slow, **EXPLICIT, load_model=("double",)) as server:
        loading = asyncio.ensure_future(asyncio.to_thread(models_of(calling.contexts["double"]).load, "slow"))
        await off_the_loop(loads.wait)
        stopping = asyncio.ensure_future(server.stop())
        with pytest.raises(ShuttingDownError):
            await loading
        gate.set()
        assert await stopping
