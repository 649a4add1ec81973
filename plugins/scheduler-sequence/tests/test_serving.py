"""The sequence batcher in a server: the batches of a model's instances, and the errors of callers."""

import asyncio
from contextlib import asynccontextmanager

import numpy as np
import pytest

import naiad_scheduler_sequence
from naiad import Request, Server, Tensor
from naiad.errors import InvalidArgumentError, QueueTimeoutError
from naiad_testing.backends import FakeBackend

CONTROLS = """
  control_input [
    { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } },
    { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } },
    { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } },
    { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } }
  ]
"""


@pytest.fixture
def backend():
    return FakeBackend()


@asynccontextmanager
async def serving(root, backend, batching):
    """A server of the model "m", with slots or batches of 2 on one instance."""
    config = f"""max_batch_size: 2 sequence_batching {{ {batching} {CONTROLS} }}
      input {{ name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }}
      output {{ name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }}
      instance_group {{ count: 1 kind: KIND_CPU }}"""
    backend.write(root, "m", config)
    async with Server(model_repository=[root], plugins=[backend, naiad_scheduler_sequence]) as server:
        yield server


def step(sequence, mark="", value=1.0, **fields):
    """A request of a sequence; `+` marks its first, `-` its last."""
    inputs = {"INPUT": Tensor.of("INPUT", np.full((1, 1), value, np.float32))}
    flags = {"sequence_start": "+" in mark, "sequence_end": "-" in mark}
    return Request("m", inputs, correlation_id=sequence, **flags, **fields)


def controls_of(batch):
    """The controls of a batch, row by row: ID, START, END, READY."""
    return [tuple(int(batch.input(name)[row, 0]) for name in ("ID", "START", "END", "READY")) for row in range(2)]


async def held(server, backend, first):
    """A task of a request that executes until the backend is released."""
    backend.hold()
    task = asyncio.create_task(server.infer(first))
    await asyncio.to_thread(backend.wait_until_held)
    return task


async def submitted(server, *requests):
    """Tasks of requests that have reached the model's queue."""
    tasks = [asyncio.create_task(server.infer(each)) for each in requests]
    await asyncio.sleep(0)
    return tasks


async def test_each_sequence_keeps_its_row_and_the_model_is_notified_what_is_in_it(tmp_path, backend):
    async with serving(tmp_path, backend, "direct { }") as server:
        await asyncio.gather(server.infer(step(5, "+")), server.infer(step(6, "+")))
        await server.infer(step(6))
        await asyncio.gather(server.infer(step(6, "-")), server.infer(step(5, "-")))

    assert [controls_of(batch) for batch in backend.batches] == [
        [(5, 1, 0, 1), (6, 1, 0, 1)],
        [(0, 0, 0, 0), (6, 0, 0, 1)],
        [(5, 0, 1, 1), (6, 0, 1, 1)],
    ]


async def test_answers_go_to_the_callers_of_their_rows(tmp_path, backend):
    async with serving(tmp_path, backend, "direct { }") as server:
        responses = await asyncio.gather(server.infer(step(5, "+-", 50.0)), server.infer(step(6, "+-", 60.0)))

    assert [response.outputs["OUTPUT"].array.tolist() for response in responses] == [[[50.0]], [[60.0]]]


async def test_the_oldest_requests_share_a_batch(tmp_path, backend):
    async with serving(tmp_path, backend, "oldest { max_candidate_sequences: 4 }") as server:
        first = await held(server, backend, step(1, "+"))
        tasks = await submitted(server, step(1, "-"), step(2, "+-"), step(3, "+-"))
        backend.release()
        await asyncio.gather(first, *tasks)

    ids = [[request.correlation_id for request in batch.requests] for batch in backend.batches]
    assert ids == [[1], [1, 2], [3]]


async def test_a_request_of_no_sequence_is_informed_what_it_lacks(tmp_path, backend):
    async with serving(tmp_path, backend, "direct { }") as server:
        with pytest.raises(InvalidArgumentError, match="the START flag"):
            await server.infer(step(9))
        with pytest.raises(InvalidArgumentError, match="correlation ID"):
            await server.infer(step(0))

    assert backend.batches == []


async def test_a_sequence_that_gets_no_slot_in_time_is_refused_while_the_instance_is_busy(tmp_path, backend):
    async with serving(tmp_path, backend, "oldest { max_candidate_sequences: 1 }") as server:
        first = await held(server, backend, step(1, "+-"))
        with pytest.raises(QueueTimeoutError):
            await server.infer(step(2, "+", timeout_microseconds=1))
        backend.release()
        await first

    assert len(backend.batches) == 1


async def test_a_sequence_in_the_backlog_holds_no_ordered_responses_back(tmp_path, backend):
    ordered = "oldest { max_candidate_sequences: 1 preserve_ordering: true } max_sequence_idle_microseconds: 60000000"
    async with serving(tmp_path, backend, ordered) as server, asyncio.timeout(5):
        await server.infer(step(1, "+"))
        waiting = asyncio.create_task(server.infer(step(2, "+-")))
        await asyncio.sleep(0)
        await server.infer(step(1))
        await server.infer(step(1, "-"))
        await waiting


async def test_a_refused_sequence_in_the_backlog_of_an_ordered_model_gets_its_error(tmp_path, backend):
    ordered = "oldest { max_candidate_sequences: 1 preserve_ordering: true } max_sequence_idle_microseconds: 60000000"
    async with serving(tmp_path, backend, ordered) as server, asyncio.timeout(5):
        running = await held(server, backend, step(1, "+-"))
        with pytest.raises(QueueTimeoutError):
            await server.infer(step(2, "+", timeout_microseconds=1000))
        backend.release()
        await running
