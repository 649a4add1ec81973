"""Requests through a whole server: what models see, and what callers get."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from naiad.backend import Answer, Batch, Reply
from naiad.config import ModelConfig
from naiad.datatypes import TENSOR_TYPES
from naiad.default_scheduler import FifoScheduler
from naiad.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ModelFailedError,
    NotFoundError,
    QueueFullError,
)
from naiad.hookspecs import hookimpl
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason, Scheduler, SchedulerFactory, Ticket
from naiad.testing.backends import FakeBackend
from naiad.types import Request, Response, Tensor

from .loops import jump, turns, until
from .serving import FLOATS, Steered, SteeredInstance, off_the_loop, request, rows, running, write_model

BATCHED = "max_batch_size: 8 dynamic_batching { }"


class AllAtOnce(FifoScheduler):
    """Sends all that waits as one batch."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if not idle or not self._waiting:
            return NOTHING
        return Decision((Dispatch(idle[0], tuple(self._oldest() for _ in range(len(self._waiting))), "all"),))


class OfTwo(FifoScheduler):
    """Refuses the third that waits."""

    def arrive(self, ticket: Ticket) -> Drop | None:
        return Drop((ticket.id,), DropReason.QUEUE_FULL) if len(self._waiting) == 2 else super().arrive(ticket)


class Scheduling:
    """A plugin that gives models with `dynamic_batching` this scheduler."""

    name = "test"
    choice = "dynamic_batching"

    def __init__(self, make: type[FifoScheduler]) -> None:
        self._make = make

    @hookimpl
    def naiad_schedulers(self) -> Sequence[SchedulerFactory]:
        return [self]

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        return self._make()


# What passes through


async def test_a_request_gets_its_response(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": batch.input("INPUT") * 2})
    backend.write(tmp_path, "double")

    async with running(tmp_path, backend) as server:
        response = await server.infer(request("double", 1, 2, id="r1"))

    assert (response.model_name, response.version, response.id) == ("double", 1, "r1")
    assert response.outputs["OUTPUT"].array.tolist() == [2, 4]


async def test_a_request_alone_is_passed_as_it_came(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)
    given = rows("m", 1, 2)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        response = await server.infer(given)

    (batch,) = backend.batches
    assert batch.requests[0] is given
    assert batch.input("INPUT") is given.inputs["INPUT"].payload
    assert response.outputs["OUTPUT"].payload is given.inputs["INPUT"].payload


async def test_a_batch_is_joined_once_and_answered_in_views(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        responses = await asyncio.gather(*(server.infer(rows("m", *values)) for values in [(1,), (2, 3), (4,)]))

    (batch,) = backend.batches
    assert batch.sizes == [1, 2, 1]
    assert [response.outputs["OUTPUT"].array.ravel().tolist() for response in responses] == [[1], [2, 3], [4]]
    assert all(response.outputs["OUTPUT"].array.base is batch.input("INPUT") for response in responses)


async def test_what_arrives_during_an_execution_goes_together_after_it(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        backend.hold()
        first = asyncio.ensure_future(server.infer(rows("m", 1)))
        await off_the_loop(backend.wait_until_held)
        others = [asyncio.ensure_future(server.infer(rows("m", 2))) for _ in range(4)]
        await turns()
        backend.release()
        await asyncio.gather(first, *others)

    assert [batch.size for batch in backend.batches] == [1, 4]


@pytest.mark.parametrize("wire", sorted(TENSOR_TYPES))
async def test_every_datatype_goes_in_and_out(tmp_path: Path, wire: str) -> None:
    kind = TENSOR_TYPES[wire]
    declared = f"data_type: {kind.config.name} dims: [ -1 ]"
    backend = FakeBackend()
    backend.write(tmp_path, "m", f'input {{ name: "INPUT" {declared} }} output {{ name: "OUTPUT" {declared} }}')
    full = np.array([b"a\0b", b"\0"], dtype=object) if wire == "BYTES" else np.array([0, 1]).astype(kind.dtype)

    async with running(tmp_path, backend) as server:
        for array in (full, full[:0]):
            response = await server.infer(Request("m", {"INPUT": Tensor("INPUT", wire, array.shape, array)}))
            assert response.outputs["OUTPUT"].datatype == wire
            assert response.outputs["OUTPUT"].array.tolist() == array.tolist()


async def test_the_model_sees_reshaped_inputs_and_the_client_its_own_shapes(tmp_path: Path) -> None:
    backend = FakeBackend()
    reshape = "data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] }"
    backend.write(
        tmp_path, "m", f'max_batch_size: 4 input {{ name: "INPUT" {reshape} }} output {{ name: "OUTPUT" {reshape} }}'
    )

    async with running(tmp_path, backend) as server:
        response = await server.infer(rows("m", 1, 2, 3))

    assert backend.batches[0].input("INPUT").shape == (3,)
    assert response.outputs["OUTPUT"].shape == (3, 1)


async def test_optional_inputs_may_be_left_out(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": np.array([len(batch.input_names)], dtype=np.float32)})
    optional = 'input { name: "BIAS" data_type: TYPE_FP32 dims: [ 1 ] optional: true }'
    backend.write(tmp_path, "m", FLOATS + optional)
    both = request("m", 1)
    both.inputs = {**both.inputs, "BIAS": Tensor.of("BIAS", np.ones(1, dtype=np.float32))}

    async with running(tmp_path, backend) as server:
        without, with_bias = await server.infer(request("m", 1)), await server.infer(both)

    assert [each.outputs["OUTPUT"].array.tolist() for each in (without, with_bias)] == [[1], [2]]


async def test_dlpack_goes_in_and_out(tmp_path: Path) -> None:
    class Foreign:
        def __init__(self, array: np.ndarray) -> None:
            self._array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[Any, int]:
            return self._array.__dlpack_device__()

    backend = FakeBackend(answer=lambda batch: {"OUTPUT": Foreign(batch.input("INPUT") + 1)})
    backend.write(tmp_path, "m")
    array = np.array([1, 2], dtype=np.float32)

    async with running(tmp_path, backend) as server:
        response = await server.infer(Request("m", {"INPUT": Tensor("INPUT", "FP32", (2,), Foreign(array))}))

    assert response.outputs["OUTPUT"].array.tolist() == [2, 3]


async def test_replies_carry_parameters_and_errors_for_their_own_request(tmp_path: Path) -> None:
    def answer(batch: Batch) -> Answer:
        return [
            InvalidArgumentError(f"{each.id} is odd") if each.id == "b" else Reply({}, {"for": each.id})
            for each in batch.requests
        ]

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        calls = (server.infer(rows("m", 1, id=name)) for name in "abc")
        first, second, third = await asyncio.gather(*calls, return_exceptions=True)

    assert isinstance(first, Response)
    assert isinstance(third, Response)
    assert (first.parameters, third.parameters) == ({"for": "a"}, {"for": "c"})
    assert type(second) is InvalidArgumentError
    assert str(second) == "b is odd"


async def test_the_largest_version_answers_unless_another_is_asked_for(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "version_policy { all { } }", versions=(2, 10, 3))

    async with running(tmp_path, backend) as server:
        answers = [await server.infer(request("m", 1, version=version)) for version in (0, 2, 3)]

    assert [answer.version for answer in answers] == [10, 2, 3]


async def test_results_come_back_on_the_thread_of_the_loop(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    threads = []
    answered = asyncio.Event()

    def deliver(outcome: object) -> None:
        threads.append(threading.current_thread())
        answered.set()

    async with running(tmp_path, backend) as server:
        server.submit(request("m", 1), deliver)
        await answered.wait()

    assert threads == [threading.current_thread()]


# What is refused at once


async def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        with pytest.raises(NotFoundError, match="Request for unknown model: 'ghost' is not found"):
            await server.infer(request("ghost", 1))


async def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(NotFoundError, match="Request for unknown model: 'm' version 7 is not found"):
            await server.infer(request("m", 1, version=7))


@pytest.mark.parametrize(("name", "prefix"), [("", ""), ("r7", "[request id: r7] ")])
async def test_a_bad_request_is_refused_with_its_id(tmp_path: Path, name: str, prefix: str) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(InvalidArgumentError) as caught:
            server.submit(Request("m", {}, id=name), print)

    assert str(caught.value).startswith(f"{prefix}expected 1 inputs but got 0 inputs for model 'm'")
    assert backend.batches == []


async def test_a_full_queue_refuses_at_once_while_the_model_hangs(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(OfTwo)) as server:
        backend.hold()
        executing = asyncio.ensure_future(server.infer(rows("m", 1)))
        await off_the_loop(backend.wait_until_held)
        waiting = [asyncio.ensure_future(server.infer(rows("m", 1))) for _ in range(2)]
        await turns()
        with pytest.raises(QueueFullError, match="Exceeds maximum queue size of model 'm'"):
            server.submit(rows("m", 1), print)
        backend.release()
        await asyncio.gather(executing, *waiting)


# Models that fail


async def test_an_exception_reaches_the_caller_and_its_traceback_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(batch: Batch) -> Answer:
        raise ZeroDivisionError("cannot divide by cucumber")

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(ModelFailedError) as caught:
            await server.infer(request("m", 1, id="r9"))
        assert server.model_ready("m").ready

    assert str(caught.value) == "instance 'm_0' failed: ZeroDivisionError: cannot divide by cucumber"
    assert "Traceback" in caplog.text
    assert "r9" in caplog.text


async def test_an_exception_fails_the_whole_batch_and_nothing_after_it(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        backend.answer = lambda batch: {}["nothing"]
        failed = await asyncio.gather(*(server.infer(rows("m", 1)) for _ in range(3)), return_exceptions=True)
        backend.answer = lambda batch: {"OUTPUT": batch.input("INPUT")}
        response = await server.infer(rows("m", 5))

    assert {str(error) for error in failed} == {"instance 'm_0' failed: KeyError: 'nothing'"}
    assert response.outputs["OUTPUT"].array.tolist() == [[5]]


async def test_an_error_of_ours_keeps_its_kind_and_needs_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(batch: Batch) -> Answer:
        raise InvalidArgumentError("the text is too long; shorten it")

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(InvalidArgumentError, match=r"^the text is too long; shorten it$"):
            await server.infer(request("m", 1))

    assert "Traceback" not in caplog.text


async def test_an_answer_that_breaks_the_configuration_reaches_the_caller(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": np.zeros(2)})
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(ModelFailedError, match="produced FP64 for output 'OUTPUT'"):
            await server.infer(request("m", 1))


# Several at once


async def test_several_instances_execute_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(3, timeout=10)

    def answer(batch: Batch) -> Answer:
        together.wait()
        return {"OUTPUT": batch.input("INPUT")}

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m", "instance_group { count: 3 }")

    async with running(tmp_path, backend) as server:
        responses = await asyncio.gather(*(server.infer(request("m", value)) for value in range(3)))

    assert [response.outputs["OUTPUT"].array.tolist() for response in responses] == [[0], [1], [2]]


async def test_one_instance_never_executes_two_batches_at_the_same_time(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", value))) for value in range(5)]
        await off_the_loop(backend.wait_until_held)
        with pytest.raises(TimeoutError):
            backend.wait_until_held(timeout=0.01)
        backend.release()
        await asyncio.gather(*calls)

    assert [batch.input("INPUT").tolist() for batch in backend.batches] == [[0], [1], [2], [3], [4]]


async def test_an_instance_that_answers_with_futures_takes_several_batches(tmp_path: Path) -> None:
    given: list[tuple[Batch, Future[Answer]]] = []
    full = threading.Event()

    def execute(batch: Batch) -> Future[Answer]:
        given.append((batch, Future()))
        if len(given) == 3:
            full.set()
        return given[-1][1]

    backend = Steered(execute=execute, instantiate=lambda placement: SteeredInstance(backend, concurrency=3))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        calls = [asyncio.ensure_future(server.infer(request("m", value))) for value in range(4)]
        await off_the_loop(lambda: full.wait(10) or None)
        assert len(given) == 3
        assert server.instances("m")[0].busy_seconds > 0
        for batch, future in reversed(given[:3]):
            future.set_result({"OUTPUT": batch.input("INPUT")})
        await asyncio.gather(*calls[:3])
        await until(lambda: len(given) == 4)
        assert server.instances("m")[0].busy_seconds > 0
        given[3][1].set_result({"OUTPUT": given[3][0].input("INPUT")})
        responses = await asyncio.gather(*calls)
        assert server.instances("m")[0].busy_seconds == 0

    assert [response.outputs["OUTPUT"].array.tolist() for response in responses] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("end", ["exception", "exit", "cancelled"])
async def test_a_future_that_fails_fails_its_batch(tmp_path: Path, end: str) -> None:
    def execute(batch: Batch) -> Future[Answer]:
        future: Future[Answer] = Future()
        if end == "cancelled":
            future.cancel()
        else:
            future.set_exception(ValueError("lost") if end == "exception" else SystemExit("lost"))
        return future

    backend = Steered(execute=execute)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(ModelFailedError, match=r"instance 'm_0' failed: (ValueError|SystemExit|CancelledError)"):
            await server.infer(request("m", 1))
        assert server.model_ready("m").ready


async def test_a_passive_instance_is_made_and_never_used(tmp_path: Path) -> None:
    used: list[str] = []

    class Named(SteeredInstance):
        def __init__(self, name: str) -> None:
            super().__init__(backend)
            self.name = name

        def execute(self, batch: Batch) -> Answer | Future[Answer]:
            used.append(self.name)
            return super().execute(batch)

    backend = Steered(instantiate=lambda placement: Named(placement.name))
    groups = 'instance_group [ { name: "a" passive: true }, { name: "b" } ]'
    write_model(tmp_path, "m", FLOATS + groups)

    async with running(tmp_path, backend) as server:
        await asyncio.gather(*(server.infer(request("m", 1)) for _ in range(4)))

    assert {placement.name for placement in backend.placements} == {"a_0", "b_0"}
    assert used == ["b_0"] * 4


# Callers that leave, and deadlines


async def test_a_caller_that_leaves_while_it_waits_is_forgotten(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        backend.hold()
        executing = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(backend.wait_until_held)
        leaving = asyncio.ensure_future(server.infer(request("m", 2)))
        await turns()
        leaving.cancel()
        await turns()
        backend.release()
        await executing

    assert leaving.cancelled()
    assert len(backend.batches) == 1


async def test_a_caller_that_leaves_while_its_request_executes_troubles_nobody(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        backend.hold()
        leaving = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(backend.wait_until_held)
        leaving.cancel()
        await turns()
        backend.release()
        response = await server.infer(request("m", 2))
        statistics = server.statistics("m")[0]

    assert leaving.cancelled()
    assert response.outputs["OUTPUT"].array.tolist() == [2]
    assert (statistics.success.count, statistics.fail.count) == (1, 1)


async def test_a_model_that_hangs_past_the_deadline_is_given_up_and_others_go_on(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "hangs", "instance_group { count: 2 }")

    async with running(tmp_path, backend) as server:
        backend.hold()
        late = asyncio.ensure_future(server.infer(request("hangs", 1, deadline=monotonic() + 30)))
        await off_the_loop(backend.wait_until_held)
        await jump(31)
        (told,) = await asyncio.gather(late, return_exceptions=True)
        assert isinstance(told, DeadlineExceededError)
        assert server.model_ready("hangs").ready

        backend.release()
        assert isinstance(await server.infer(request("hangs", 2)), Response)


async def test_every_caller_gets_its_own_answer_under_many_at_once(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED + " instance_group { count: 2 }")

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        responses = await asyncio.gather(*(server.infer(rows("m", value, id=str(value))) for value in range(1000)))

    assert [float(response.outputs["OUTPUT"].array[0, 0]) for response in responses] == list(range(1000))
    assert [response.id for response in responses] == [str(value) for value in range(1000)]
