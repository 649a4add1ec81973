"""Trace events of requests on their way through the kernel."""

import asyncio
from pathlib import Path

import pytest

from naiad.backend import Answer, Batch
from naiad.errors import DeadlineExceededError, ModelFailedError, NotFoundError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, rows, running
from naiad_testing.loops import jump
from naiad_testing.scheduling import AllAtOnce, Scheduling
from naiad_testing.tracing import FakeTrace

from .streaming import answers_of, reply, sending, serving

QUEUED = ["REQUEST_START", "QUEUE_START"]
COMPUTED = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]


async def test_a_trace_follows_its_request(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", versions=(3,))
    trace = FakeTrace()

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1, trace=trace))

    assert trace.events == [*QUEUED, *COMPUTED, "INFER_RESPONSE_COMPLETE", "REQUEST_END"]
    assert list(trace.times.values()) == sorted(trace.times.values())
    assert trace.version == 3


async def test_a_trace_sees_tensors_as_they_came_and_to_model_shape_them(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(
        tmp_path,
        "m",
        """
        input { name: "INPUT" data_type: TYPE_FP32 dims: [4] reshape { shape: [2, 2] } }
        output { name: "OUTPUT" data_type: TYPE_FP32 dims: [2, 2] }
        """,
    )
    backend.write(tmp_path, "plain")
    reshaped, plain = FakeTrace(), FakeTrace()

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1, 2, 3, 4, trace=reshaped))
        await server.infer(request("plain", 1, 2, trace=plain))

    assert reshaped.shapes == {
        "TENSOR_QUEUE_INPUT": [(4,)],
        "TENSOR_BACKEND_INPUT": [(2, 2)],
        "TENSOR_BACKEND_OUTPUT": [(2, 2)],
    }
    assert plain.shapes == {"TENSOR_QUEUE_INPUT": [(2,)], "TENSOR_BACKEND_OUTPUT": [(2,)]}


async def test_every_traced_request_of_a_batch_is_reported_and_the_first_is_current(tmp_path: Path) -> None:
    traces = [None, FakeTrace(), FakeTrace()]
    current: list[bool] = []

    def look(batch: Batch) -> Answer:
        current.extend(trace.is_current for trace in traces if trace is not None)
        return {"OUTPUT": batch.input("INPUT")}

    backend = FakeBackend(answer=look)
    backend.write(tmp_path, "m", "max_batch_size: 8 dynamic_batching { }")
    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        await asyncio.gather(*(server.infer(rows("m", 1, trace=trace)) for trace in traces))

    assert current == [True, False]
    assert all(trace.events == [*QUEUED, *COMPUTED, "INFER_RESPONSE_COMPLETE", "REQUEST_END"] for trace in traces[1:])


async def test_a_request_that_fails_is_reported_to_its_end(tmp_path: Path) -> None:
    def fail(batch: Batch) -> Answer:
        raise ValueError("no")

    backend = FakeBackend(answer=fail)
    backend.write(tmp_path, "m")
    trace = FakeTrace()

    async with running(tmp_path, backend) as server:
        with pytest.raises(ModelFailedError):
            await server.infer(request("m", 1, trace=trace))

    assert trace.events == [*QUEUED, *COMPUTED, "INFER_RESPONSE_COMPLETE", "REQUEST_END"]
    assert not trace.is_current


async def test_a_request_that_is_never_executed_only_waited(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    waiting = FakeTrace()

    async with running(tmp_path, backend) as server:
        backend.hold()
        first = asyncio.create_task(server.infer(request("m", 1)))
        await asyncio.to_thread(backend.wait_until_held)
        deadline = asyncio.get_running_loop().time() + 5
        second = asyncio.create_task(server.infer(request("m", 2, trace=waiting, deadline=deadline)))
        await jump(6)
        with pytest.raises(DeadlineExceededError):
            await second
        backend.release()
        await first

    assert waiting.events == [*QUEUED, "REQUEST_END"]


async def test_what_comes_after_the_deadline_is_not_reported(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    trace = FakeTrace()

    async with running(tmp_path, backend) as server:
        backend.hold()
        deadline = asyncio.get_running_loop().time() + 5
        late = asyncio.create_task(server.infer(request("m", 1, trace=trace, deadline=deadline)))
        await asyncio.to_thread(backend.wait_until_held)
        await jump(6)
        with pytest.raises(DeadlineExceededError):
            await late
        backend.release()
        await server.infer(request("m", 2))

    assert trace.events == [*QUEUED, "COMPUTE_START", "REQUEST_END"]


async def test_each_response_of_many_is_reported(tmp_path: Path) -> None:
    trace = FakeTrace()

    async with serving(tmp_path, sending((reply(1), False), (reply(2, 3), False), (None, True))) as server:
        await answers_of(server, trace=trace)

    completed = ["INFER_RESPONSE_COMPLETE"] * 2
    assert trace.events == [*QUEUED, COMPUTED[0], *completed, *COMPUTED[1:], "REQUEST_END"]
    assert trace.shapes["TENSOR_BACKEND_OUTPUT"] == [(1,), (2,)]


async def test_a_request_to_no_model_is_not_taken_in(tmp_path: Path) -> None:
    trace = FakeTrace()

    async with running(tmp_path) as server:
        with pytest.raises(NotFoundError):
            await server.infer(request("m", 1, trace=trace))

    assert trace.events == []
