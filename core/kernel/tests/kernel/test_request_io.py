"""Tensors that do not travel in messages: fetched and stored by the worker, each at its request's own risk."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad._engine.request_io import fetch_inputs
from naiad.batch import Batch
from naiad.errors import InternalError, InvalidArgumentError
from naiad.types import Request
from naiad_tensors.devices import EveryOutput, OnDevice, gpu
from naiad_tensors.tensors import DeferredPayload, Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop
from naiad_testing.scheduling import AllAtOnce, Scheduling

COUNT = 4


class Deferred(DeferredPayload):
    """An array that lies elsewhere."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def fetch(self) -> np.ndarray:
        return self.array

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


class FakeIO:
    """Fetches the one input, and keeps the one output; `fails` is raised by the step of that name."""

    def __init__(self, tensor: Tensor, fails: Mapping[str, Exception] | None = None) -> None:
        self.may_lend = True
        self.on_device: OnDevice | None = None
        self.only_read = True
        self.lent: list[bool] = []
        self.output: np.ndarray | None = None
        self.threads: list[int] = []
        self._tensor = tensor
        self._fails = fails or {}

    def fetch(self, inputs: Mapping[str, Tensor], devices: Collection[Any] = (), lend: bool = False) -> None:
        assert inputs["INPUT"] is self._tensor
        self._step("fetch")
        self.lent.append(lend and self.may_lend)
        if isinstance(self._tensor.payload, Deferred):
            self._tensor.payload = self._tensor.payload.fetch()

    def store(self, outputs: Mapping[str, Tensor]) -> None:
        self._step("store")
        self.output = outputs["OUTPUT"].array.copy()

    def give_back(self) -> bool:
        self._step("give back")
        return self.only_read

    def for_inputs(self, inputs: Mapping[str, Tensor]) -> "FakeIO | None":
        return None

    def _step(self, name: str) -> None:
        self.threads.append(threading.get_ident())
        if name in self._fails:
            if name == "fetch":
                self._tensor.payload = np.zeros(self._tensor.shape, np.float32)
            raise self._fails[name]


def request_of(value: float = 1.0, **fails: Exception) -> tuple[Request, FakeIO]:
    tensor = Tensor("INPUT", "FP32", (1, COUNT), Deferred(np.full((1, COUNT), value, np.float32)))
    io = FakeIO(tensor, {name.replace("_", " "): error for name, error in fails.items()})
    return Request("m", {"INPUT": tensor}, transfer=io), io


async def outcomes(root: Path, *requests: Request) -> tuple[list[Any], list[int]]:
    """What the requests are answered with, which wait behind another one; and the sizes of all batches."""
    backend = FakeBackend()
    backend.write(root, "m", "max_batch_size: 8 dynamic_batching {}")
    async with Server(model_repository=[root], plugins=[backend, Scheduling(AllAtOnce)]) as server:
        backend.hold()
        first = asyncio.ensure_future(server.infer(Request("m", {"INPUT": Tensor.of("INPUT", np.zeros((1, 1), "f4"))})))
        await off_the_loop(backend.wait_until_held)
        rest = [asyncio.ensure_future(server.infer(request)) for request in requests]
        await asyncio.sleep(0)
        backend.release()
        await first
        outcomes = await asyncio.gather(*rest, return_exceptions=True)
        return outcomes, [len(batch.requests) for batch in backend.batches]


async def test_the_worker_fetches_and_stores_and_not_the_event_loop(tmp_path: Path) -> None:
    request, io = request_of(3.0)

    await outcomes(tmp_path, request)

    assert io.output is not None
    assert np.all(io.output == 3.0)
    assert len(io.threads) == 3
    assert threading.get_ident() not in io.threads


@pytest.mark.parametrize("step", ["fetch", "store", "give_back"])
async def test_a_step_that_fails_fails_its_own_request_only(tmp_path: Path, step: str) -> None:
    broken, _ = request_of(1.0, **{step: InvalidArgumentError("the segment has shrunk")})
    whole, io = request_of(2.0)

    result, sizes = await outcomes(tmp_path, broken, whole)

    assert sizes == [1, 2]
    assert isinstance(result[0], InvalidArgumentError)
    assert str(result[0]) == "the segment has shrunk"
    assert io.output is not None
    assert np.all(io.output == 2.0)


async def test_a_request_alone_without_its_inputs_is_not_executed(tmp_path: Path) -> None:
    broken, _ = request_of(fetch=InvalidArgumentError("the segment has shrunk"))

    result, sizes = await outcomes(tmp_path, broken)

    assert (sizes, [str(outcome) for outcome in result]) == ([1], ["the segment has shrunk"])


async def test_an_input_for_which_there_is_no_memory_is_an_error_of_the_server(tmp_path: Path) -> None:
    broken, _ = request_of(fetch=MemoryError())

    result, _ = await outcomes(tmp_path, broken)

    assert isinstance(result[0], InternalError)
    assert str(result[0]) == "the inputs in shared memory cannot be read: MemoryError"


async def test_a_model_that_does_more_than_read_is_lent_nothing_more(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "max_batch_size: 8")
    pairs = [request_of() for _ in range(3)]
    pairs[1][1].only_read = False

    async with Server(model_repository=[tmp_path], plugins=[backend]) as server:
        for request, _ in pairs:
            await server.infer(request)

    assert [io.lent for _, io in pairs] == [[True], [True], [False]]


async def test_outputs_may_stay_where_they_are_stored_and_the_callers_own_request_stays_as_it_was(
    tmp_path: Path,
) -> None:
    request, io = request_of()
    io.on_device = EveryOutput((gpu(0),))
    backend = FakeBackend()
    backend.write(tmp_path, "m", "max_batch_size: 8")

    async with Server(model_repository=[tmp_path], plugins=[backend]) as server:
        await server.infer(request)

    assert backend.batches[0].requests[0].on_device is io.on_device
    assert request.on_device is None


def test_a_request_that_failed_leaves_nothing_to_the_garbage_collector() -> None:
    pairs = [request_of(fetch=InvalidArgumentError("gone")) for _ in range(2)]
    batch = Batch([request for request, _ in pairs], [1, 1])
    gone = weakref.ref(pairs[0][1])
    gc.disable()

    try:
        failures = fetch_inputs(batch)
        assert list(failures) == [0, 1]
        del batch, pairs, failures
        assert gone() is None
    finally:
        gc.enable()
