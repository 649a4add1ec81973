"""The progress of a warmup: in the index, in the log once when it takes long; and the end of one that streams."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from naiad.backend import Reply
from naiad.errors import InvalidArgumentError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop
from naiad_testing.loops import until
from naiad_warmup import progress as progress_module
from naiad_warmup.progress import WarmupProgress
from naiad_warmup.samples import _WarmupSender

from .serving import running

SAMPLE = """
model_warmup { name: "zero" batch_size: 1 count: 2
    inputs { key: "INPUT" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }
"""


def test_every_instance_tells_what_it_runs_until_it_is_warm() -> None:
    progress = WarmupProgress("m", 1, runs=3, slow=60)
    before = str(progress)
    progress.step("m_0", "zero", iteration=1, done=0)
    progress.step("m_1", "file", iteration=2, done=2)
    both = str(progress)

    progress.ended("m_0")
    one = str(progress)
    progress.ended("m_1")

    assert (before, str(progress)) == ("", "")
    assert both == "warming up: 1 of 3, instance 'm_0' runs sample 'zero'; 3 of 3, instance 'm_1' runs sample 'file'"
    assert one == "warming up: 3 of 3, instance 'm_1' runs sample 'file'"


async def test_a_warmup_that_takes_long_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "naiad.model")
    monkeypatch.setattr(progress_module, "SLOW", 0.0)
    backend = FakeBackend()
    backend.hold()
    backend.write(tmp_path, "m", SAMPLE)

    def reasons() -> list[str]:
        return [record.getMessage() for record in caplog.records if "warming up" in record.getMessage()]

    async with running(tmp_path, backend, model_control_mode="explicit") as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(backend.wait_until_held)
        await until(reasons)
        backend.release()
        await loading

    assert reasons() == ["model 'm' version 1 is still warming up: 1 of 2, instance 'm_0' runs sample 'zero'"]


async def test_a_warmup_that_is_quick_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "naiad.model")
    backend = FakeBackend()
    backend.write(tmp_path, "m", SAMPLE)

    async with running(tmp_path, backend):
        pass

    assert "warming up" not in caplog.text
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert all(timer.finished.is_set() for timer in timers)


async def test_the_index_tells_how_far_a_warmup_is(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.hold()
    backend.write(tmp_path, "m", SAMPLE)

    async with running(tmp_path, backend, model_control_mode="explicit") as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(backend.wait_until_held)
        (entry,) = server.index()
        backend.release()
        await loading
        (ready,) = server.index()

    assert (entry.state, entry.reason) == ("LOADING", "warming up: 1 of 2, instance 'm_0' runs sample 'zero'")
    assert (ready.state, ready.reason) == ("READY", "")


# The end of a request that streams


def test_the_first_end_of_a_warmup_request_counts() -> None:
    sender = _WarmupSender("m")

    sender.post(Reply({}))
    before = sender.end.done()
    sender.post(None, final=True)
    sender.post(InvalidArgumentError("late"))

    assert not before
    assert sender.end.result() is None


def test_another_thread_may_end_a_warmup_request_at_the_same_time() -> None:
    sender = _WarmupSender("m")

    class Final:
        """Says that all is sent, just after another thread has said so too."""

        def __bool__(self) -> bool:
            sender.end.set_result(None)
            return True

    sender.post(InvalidArgumentError("too late"), final=Final())  # type: ignore[arg-type]

    assert sender.end.result() is None
