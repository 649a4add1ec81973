"""The dynamic batcher in a server: what a model's instances get, and what callers get."""

import asyncio
from contextlib import asynccontextmanager

import numpy as np
import pytest

import naiad_scheduler_dynamic
from naiad import Request, Server, Tensor
from naiad.errors import QueueFullError, QueueTimeoutError
from naiad_testing.backends import FakeBackend


@pytest.fixture
def backend():
    return FakeBackend()


@asynccontextmanager
async def serving(root, backend, batching):
    """A server of the model "m" whose one instance executes a request named "first"; release it to go on."""
    backend.write(root, "m", f"max_batch_size: 8 dynamic_batching {{ {batching} }}")
    async with Server(model_repository=[root], plugins=[backend, naiad_scheduler_dynamic]) as server:
        backend.hold()
        first = asyncio.create_task(server.infer(rows("first")))
        await asyncio.to_thread(backend.wait_until_held)
        try:
            yield server
        finally:
            backend.release()
            await first


def rows(name, count=1, width=1, **fields):
    values = np.zeros((count, width), np.float32)
    return Request("m", {"INPUT": Tensor.of("INPUT", values)}, id=name, **fields)


def executed(backend):
    """The ids of the requests of each batch, without the first."""
    return [[request.id for request in batch.requests] for batch in backend.batches[1:]]


async def all_of(server, *requests):
    return await asyncio.gather(*map(server.infer, requests), return_exceptions=True)


async def submitted(server, *requests):
    """Tasks of requests that have reached the model's queue."""
    tasks = [asyncio.create_task(server.infer(each)) for each in requests]
    await asyncio.sleep(0)
    return tasks


async def test_requests_that_wait_for_the_instance_become_one_batch(tmp_path, backend):
    async with serving(tmp_path, backend, "") as server:
        tasks = await submitted(server, rows("a", 2), rows("b", 3), rows("c", 3), rows("d"))
        backend.release()
        await asyncio.gather(*tasks)
        (statistics,) = server.statistics("m")

    assert executed(backend) == [["a", "b", "c"], ["d"]]
    assert statistics.batch_reasons == {"no delay": 2, "full": 1}


async def test_requests_of_other_shapes_are_a_batch_of_their_own(tmp_path, backend):
    async with serving(tmp_path, backend, "") as server:
        tasks = await submitted(server, rows("a"), rows("b", width=2), rows("c", width=2))
        backend.release()
        await asyncio.gather(*tasks)

    assert executed(backend) == [["a"], ["b", "c"]]


async def test_requests_of_a_higher_priority_go_first(tmp_path, backend):
    async with serving(tmp_path, backend, "priority_levels: 2 default_priority_level: 2") as server:
        tasks = await submitted(server, rows("a", 8), rows("b", 8, priority=1))
        backend.release()
        await asyncio.gather(*tasks)

    assert executed(backend) == [["b"], ["a"]]


async def test_a_full_queue_refuses_with_how_full_it_is(tmp_path, backend):
    async with serving(tmp_path, backend, "default_queue_policy { max_queue_size: 1 }") as server:
        tasks = await submitted(server, rows("a"))
        with pytest.raises(QueueFullError, match="max_queue_size is 1"):
            await server.infer(rows("b"))
        backend.release()
        await asyncio.gather(*tasks)


async def test_a_request_past_its_timeout_is_rejected_while_the_instance_is_busy(tmp_path, backend):
    policy = "default_queue_policy { allow_timeout_override: true }"
    async with serving(tmp_path, backend, policy) as server:
        with pytest.raises(QueueTimeoutError, match="Request timeout expired"):
            await server.infer(rows("a", timeout_microseconds=1))

    assert executed(backend) == []


async def test_a_batch_that_is_not_full_goes_when_its_delay_is_over(tmp_path, backend):
    async with serving(tmp_path, backend, "max_queue_delay_microseconds: 1000") as server:
        backend.release()
        await all_of(server, rows("a"), rows("b"))
        (statistics,) = server.statistics("m")

    assert executed(backend) == [["a", "b"]]
    assert statistics.batch_reasons == {"delay expired": 2}
