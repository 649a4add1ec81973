"""Requests that are refused, models that fail, callers that leave: the errors that each gets."""

import asyncio
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from naiad.backend import Answer, Batch
from naiad.errors import DeadlineExceededError, InvalidArgumentError, ModelFailedError, NotFoundError
from naiad.types import Request, Response
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, rows, running
from naiad_testing.loops import jump
from naiad_testing.scheduling import AllAtOnce, Scheduling

BATCHED = "max_batch_size: 8 dynamic_batching { }"


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


async def test_a_bad_request_is_refused_before_it_is_queued(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(InvalidArgumentError) as caught:
            server.submit(Request("m", {}, id="r7"), print)

    assert str(caught.value).startswith("expected 1 inputs but got 0 inputs for model 'm'")
    assert backend.batches == []


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

    where = f"{Path(__file__).name}:{answer.__code__.co_firstlineno + 1}"
    assert str(caught.value) == f"instance 'm_0' failed: ZeroDivisionError: cannot divide by cucumber ({where})"
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

    (message,) = {str(error) for error in failed}
    assert message.startswith("instance 'm_0' failed: KeyError: 'nothing' (")
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


async def test_a_model_that_hangs_past_the_deadline_is_given_up_and_others_go_on(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "hangs", "instance_group { count: 2 }")

    async with running(tmp_path, backend) as server:
        backend.hold()
        late = asyncio.ensure_future(server.infer(request("hangs", 1, deadline=monotonic() + 30)))
        await off_the_loop(backend.wait_until_held)
        await jump(31)
        (message,) = await asyncio.gather(late, return_exceptions=True)
        assert isinstance(message, DeadlineExceededError)
        assert server.model_ready("hangs").ready

        backend.release()
        assert isinstance(await server.infer(request("hangs", 2)), Response)


async def test_the_error_of_a_model_holds_no_frames_and_so_no_tensors(tmp_path: Path) -> None:
    def fails(batch: Batch) -> Answer:
        raise ValueError("not in this mood")

    backend = FakeBackend(answer=fails)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(ModelFailedError) as caught:
            await server.infer(request("m", 1))

    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert cause.__traceback__ is None
