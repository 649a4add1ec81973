"""Streams and the end of what serves them: instances that have ended, models that go on, loops that are closed."""

import asyncio
from pathlib import Path

from naiad.backend import Answer, Batch, Sender
from naiad_testing.in_loop import request
from naiad_testing.loops import jump, until

from .streaming import Caller, reply, serving, values_of


async def test_a_stream_that_outlives_its_instance_ends_when_the_server_stops(
    tmp_path: Path,
) -> None:
    senders: list[Sender] = []

    def execute(batch: Batch) -> Answer:
        senders.append(batch.sender(0))
        return [None]

    caller = Caller()
    async with serving(tmp_path, execute, exit_timeout_secs=0.05) as server:
        server.submit(request("m", 1.0), caller, streams=True)
        await until(lambda: senders)
        stopping = asyncio.ensure_future(server.stop())
        await jump(0.1)
        await until(stopping.done)  # the clock stands still, so that the instance has all the time to end
        outcomes = values_of(caller.outcomes)
        sent = senders[0].send(reply(1))
        senders.clear()

    assert [each[0].partition(":")[0] for each in outcomes] == ["ShuttingDownError"]
    assert not sent
