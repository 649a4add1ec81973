"""The instances of a model: their number, names, places, and making them."""

import threading
from pathlib import Path
from typing import Any

import pytest

from naiad.backend import ModelContext, Placement
from naiad_testing.in_loop import FLOATS, running, write_model
from naiad_testing.steered import Steered, SteeredModel

from .reasons import reason_of


async def test_instances_are_named_after_their_group(tmp_path: Path) -> None:
    backend = Steered()
    write_model(tmp_path, "plain")
    write_model(tmp_path, "groups", FLOATS + 'instance_group [ { count: 2 }, { name: "own" kind: KIND_CPU } ]')

    async with running(tmp_path, backend) as server:
        assert [each.name for each in server.instances("plain")] == ["plain_0"]
        assert [each.name for each in server.instances("groups")] == ["groups_0_0", "groups_0_1", "own_0"]

    assert {placement.kind for placement in backend.placements} == {"CPU"}


async def test_a_backend_may_prefer_more_instances_on_a_cpu(tmp_path: Path) -> None:
    backend = Steered(cpu_instances=2)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        assert len(server.instances("m")) == 2


async def test_instances_are_made_at_the_same_time_where_the_backend_allows_it(tmp_path: Path) -> None:
    together = threading.Barrier(3, timeout=10)

    def instantiate(placement: Placement) -> Any:
        together.wait()
        return SteeredModel(backend)

    backend = Steered(instantiate=instantiate)
    write_model(tmp_path, "m", FLOATS + "instance_group { count: 3 }")

    async with running(tmp_path, backend) as server:
        assert server.ready().ready


async def test_instances_are_made_one_after_the_other_where_the_backend_asks_for_it(tmp_path: Path) -> None:
    alone = threading.Lock()
    overlaps = []

    def instantiate(placement: Placement) -> Any:
        overlaps.append(not alone.acquire(blocking=False))
        threading.Event().wait(0.005)
        alone.release()
        return SteeredModel(backend)

    backend = Steered(instantiate=instantiate, loads_in_parallel=False)
    write_model(tmp_path, "m", FLOATS + "instance_group { count: 3 }")

    async with running(tmp_path, backend) as server:
        assert server.ready().ready

    assert overlaps == [False, False, False]


@pytest.mark.parametrize("count", [1, 3])
async def test_models_load_at_the_same_time_as_many_as_the_option_says(tmp_path: Path, count: int) -> None:
    loading, most, lock = 0, 0, threading.Lock()
    full = threading.Barrier(count, timeout=10)

    def load(context: ModelContext) -> Any:
        nonlocal loading, most
        with lock:
            loading += 1
            most = max(most, loading)
        full.wait()
        with lock:
            loading -= 1
        return SteeredModel(backend)

    backend = Steered(load=load)
    for number in range(6):
        write_model(tmp_path, f"m{number}")

    async with running(tmp_path, backend, model_load_thread_count=count) as server:
        assert server.ready().ready

    assert most == count


async def test_a_gpu_that_is_not_there_is_a_clear_load_error(tmp_path: Path) -> None:
    backend = Steered()
    write_model(tmp_path, "good")
    write_model(tmp_path, "broken", FLOATS + "instance_group { kind: KIND_GPU gpus: [ 97 ] }")

    async with running(tmp_path, backend) as server:
        reason = await reason_of(server)

    assert "no GPUs are available" in reason or "gpu id 97" in reason


async def test_instances_that_are_made_one_after_the_other_stop_at_the_first_failure(tmp_path: Path) -> None:
    def instantiate(placement: Placement) -> Any:
        raise MemoryError(f"no room for {placement.name}")

    backend = Steered(instantiate=instantiate, loads_in_parallel=False)
    write_model(tmp_path, "m", FLOATS + "instance_group { count: 3 }")

    async with running(tmp_path, backend) as server:
        (entry,) = server.index()

    assert "no room for m_0_0" in entry.reason
    assert len(backend.placements) == 1
