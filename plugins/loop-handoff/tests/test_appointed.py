"""A worker that is appointed leader and steps down in the same round of the event loop: it has never led."""

import asyncio
from collections.abc import Callable

import pytest

from naiad.backend import Placement
from naiad_config import ModelInstanceGroup
from naiad_loop_handoff.handoff import LoopHandoff
from naiad_loop_handoff.workers import HandoffWorker, NativeHandoffWorker
from naiad_testing.loops import until
from naiad_testing.workers import FakeHost, FakeItem

Worker = HandoffWorker[FakeItem]
Body = Callable[[Worker, FakeHost], object]

LONG = 10.0
"""Seconds after which a batch that is not back has failed its test."""

PLACEMENT = Placement("m_0", "CPU", 0, ModelInstanceGroup())


def in_one_round(kind: type[Worker], body: Body) -> FakeHost:
    """Appoint a worker and call `body` in one round of the loop, wait until its batch is back, and stop it."""
    loop = asyncio.new_event_loop()
    handoff, host = LoopHandoff(loop), FakeHost(loop)

    async def main() -> None:
        worker = kind(handoff, PLACEMENT, host)
        worker.start()
        await asyncio.wrap_future(worker.started)
        handoff.appoint(worker)
        body(worker, host)
        async with asyncio.timeout(LONG):
            await until(lambda: host.returned)
        worker.stop()
        await asyncio.wrap_future(worker.ended)

    try:
        handoff.run(main())
    finally:
        loop.close()
    return host


@pytest.mark.parametrize("kind", [HandoffWorker, NativeHandoffWorker])
def test_a_batch_of_a_leader_that_steps_down_before_it_leads_is_executed(kind: type[Worker]) -> None:
    batch, seen = FakeItem(), list[int]()

    def instructed(worker: Worker, host: FakeHost) -> None:
        worker.execute(batch)
        worker.instruct(lambda instance: seen.append(len(host.executed)))

    host = in_one_round(kind, instructed)

    assert host.returned == [batch]
    assert seen == [1]  # an instruction comes after the batches before


def test_a_leader_that_stops_before_it_leads_executes_its_batch_first() -> None:
    batch = FakeItem()

    def stopped(worker: Worker, host: FakeHost) -> None:
        worker.execute(batch)
        worker.stop()

    host = in_one_round(HandoffWorker, stopped)

    assert (host.executed, host.returned, host.closed) == ([batch], [batch], 1)
