"""Conformance check of worker kinds, and a fake host whose instance a test fails or ends."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import Any

import numpy as np

from naiad.backend import Answer, BackendTraits, Batch, Instance, Placement
from naiad.errors import InternalError, NaiadError
from naiad.extend import Worker, WorkerKind
from naiad.types import Request
from naiad_config import ModelConfig, ModelInstanceGroup
from naiad_tensors.tensors import Tensor
from naiad_testing.simulation import ContractBroken

__all__ = ["ContractBroken", "FakeHost", "FakeItem", "check_workers"]

_SECONDS = 30.0
"""How long the check waits for another thread."""


class FakeItem:
    """A batch of one request; `ends` is what its execution raises to end the instance."""

    def __init__(self, ends: BaseException | None = None) -> None:
        tensor = Tensor.of("INPUT", np.zeros(1, np.float32))
        self.batch = Batch([Request("m", {"INPUT": tensor})], [1])
        self.ends = ends
        self.started_ns = 0
        self.done_ns = 0


class _Instance:
    def execute(self, batch: Batch) -> Answer:
        return {}

    def close(self) -> None:
        return None


class FakeHost:
    """A model version that writes down what a worker does; `failure` is raised in place of making an instance.

    `executed` are the batches that began, `returned` those that came back, `lost` those of a death,
    `threads` the threads on which the instance lived, and `closed` says how often it was closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, failure: NaiadError | None = None) -> None:
        self.loop = loop
        self.failure = failure
        self.executed: list[FakeItem] = []
        self.returned: list[FakeItem] = []
        self.lost: list[FakeItem] = []
        self.deaths: list[str] = []
        self.threads: set[int] = set()
        self.closed = 0

    def make_instance(self) -> Instance:
        """The instance, or the failure."""
        self.threads.add(threading.get_ident())
        if self.failure is not None:
            raise self.failure
        return _Instance()

    def close_instance(self, instance: Instance) -> None:
        """Count it."""
        self.threads.add(threading.get_ident())
        self.closed += 1

    def execute(self, instance: Instance, item: FakeItem, executed: Callable[[FakeItem], None]) -> None:
        """Write it down; the batch may end the instance."""
        self.threads.add(threading.get_ident())
        self.executed.append(item)
        item.started_ns = monotonic_ns()
        if item.ends is not None:
            raise item.ends
        item.done_ns = monotonic_ns()
        executed(item)

    def report_death(self, error: BaseException) -> str:
        """The type of the error."""
        return type(error).__name__

    def done(self, item: FakeItem) -> None:
        """Write it down. Raises ContractBroken outside of the event loop."""
        _require(asyncio._get_running_loop() is self.loop, "a batch came back outside of the event loop")
        self.returned.append(item)

    def died(self, reason: str, lost: Sequence[FakeItem]) -> None:
        """Write it down. Raises ContractBroken outside of the event loop."""
        _require(asyncio._get_running_loop() is self.loop, "a death was reported outside of the event loop")
        self.deaths.append(reason)
        self.lost.extend(lost)


async def check_workers(kind: WorkerKind, execute_on: str = "", batches: int = 500) -> None:
    """Hold the workers of a kind to the contract, on the running event loop. Raises ContractBroken.

    `execute_on` is what a model asks for; the kind must accept a model of its own choice.
    """
    make = kind.worker_for(ModelConfig(name="m"), BackendTraits(name="fake"), execute_on)
    if make is None:
        raise ContractBroken(f"kind '{kind.name}' leaves a plain model with execute_on '{execute_on}' to others")

    workers: list[Worker[FakeItem]] = []

    def started(failure: NaiadError | None = None) -> tuple[Worker[FakeItem], FakeHost]:
        host = FakeHost(asyncio.get_running_loop(), failure)
        worker = make(_PLACEMENT, host)
        worker.start()
        workers.append(worker)
        return worker, host

    try:
        await _check_batches(*started(), batches)
        await _check_one_by_one(*started(), batches)
        await _check_death(*started())
        await _check_failure(*started(InternalError("it cannot be made")))
    finally:
        for worker in workers:
            if not worker.ended.done():  # its check failed before it had the worker stop
                worker.stop()


_PLACEMENT = Placement(name="m_0", kind="CPU", device=0, group=ModelInstanceGroup())


async def _check_batches(worker: Worker[FakeItem], host: FakeHost, batches: int) -> None:
    """Batches at once come back in order, all from one thread; instructions take their turn among them."""
    await asyncio.wait_for(asyncio.wrap_future(worker.started), _SECONDS)
    items = [FakeItem() for _ in range(batches)]
    seen: list[int] = []
    for item in items[: batches // 2]:
        worker.execute(item)
    _require(set(worker.executing) <= set(items), "it executes what it was not given")
    worker.instruct(lambda instance: seen.append(len(host.executed)))
    for item in items[batches // 2 :]:
        worker.execute(item)
    await _until(lambda: len(host.returned) >= batches, "not every batch came back")
    _require(host.returned == items, "batches came back in another order, or twice")
    _require(len(seen) == 1 and seen[0] >= batches // 2, "an instruction overtook a batch, or did not run once")
    await _check_end(worker, host)


async def _check_one_by_one(worker: Worker[FakeItem], host: FakeHost, batches: int) -> None:
    """The same when each batch is sent after the one before has come back."""
    await asyncio.wait_for(asyncio.wrap_future(worker.started), _SECONDS)
    for count in range(1, batches + 1):
        worker.execute(FakeItem())
        await _until(lambda count=count: len(host.returned) == count, "a batch did not come back")  # type: ignore[misc]
    await _check_end(worker, host)


async def _check_end(worker: Worker[FakeItem], host: FakeHost) -> None:
    _require(not worker.executing, "it executes although everything came back")
    worker.stop()
    await asyncio.wait_for(asyncio.wrap_future(worker.ended), _SECONDS)
    _require(host.closed == 1, f"the instance was closed {host.closed} times")
    _require(len(host.threads) == 1, f"the instance lived on {len(host.threads)} threads")
    _require(not host.deaths, "a worker that was stopped died")


async def _check_death(worker: Worker[FakeItem], host: FakeHost) -> None:
    """A batch that ends the instance is lost with those behind it, each exactly once."""
    await asyncio.wait_for(asyncio.wrap_future(worker.started), _SECONDS)
    first, deadly, behind = FakeItem(), FakeItem(SystemExit("it left")), FakeItem()
    for item in (first, deadly, behind):
        worker.execute(item)
    await asyncio.wait_for(asyncio.wrap_future(worker.ended), _SECONDS)
    await _until(lambda: bool(host.deaths), "a death was not reported")
    _require(host.deaths == ["SystemExit"], f"deaths were reported as {host.deaths}")
    _require((host.returned, host.lost) == ([first], [deadly, behind]), "a batch was not returned or lost exactly once")
    _require(not worker.executing, "it executes after its death")
    _require(host.closed == 1, f"the instance was closed {host.closed} times")


async def _check_failure(worker: Worker[FakeItem], host: FakeHost) -> None:
    """An instance that cannot be made is the error of `started`, and there is nothing to close."""
    failure: Any = None
    try:
        await asyncio.wait_for(asyncio.wrap_future(worker.started), _SECONDS)
    except NaiadError as error:
        failure = error
    _require(failure is host.failure, f"`started` has {failure!r} in place of the failure")
    await asyncio.wait_for(asyncio.wrap_future(worker.ended), _SECONDS)
    _require(not host.closed and not host.deaths, "what was never made was closed, or died")


async def _until(condition: Callable[[], bool], broken: str) -> None:
    """Let the loop go on until it holds."""
    deadline = monotonic_ns() + _SECONDS * 1e9
    while not condition():
        _require(monotonic_ns() < deadline, broken)
        await asyncio.sleep(0)


def _require(holds: bool, broken: str) -> None:
    if not holds:
        raise ContractBroken(broken)
