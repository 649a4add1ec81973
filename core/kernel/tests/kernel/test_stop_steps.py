"""The steps of a stop: bounded in time, and an error in one skips no other."""

import asyncio
import threading

import pytest

from naiad._server.stop_steps import StopSteps
from naiad.threads import on_own_thread
from naiad_testing.loops import jump, turns


async def test_a_step_gives_its_result() -> None:
    assert await StopSteps().run("the models", asyncio.sleep(0, True), 1.0, False)


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit("no"), KeyboardInterrupt("no")])
async def test_a_step_that_raises_gives_the_fallback(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> bool:
        raise error

    assert not await StopSteps().run("the frontends", fail(), 1.0, False)
    assert "stopping: the frontends failed" in caplog.text


async def test_a_step_that_hangs_is_given_up_and_named(caplog: pytest.LogCaptureFixture) -> None:
    steps = StopSteps()

    running = asyncio.ensure_future(steps.run("the response cache", asyncio.Event().wait(), 2.0, False))
    await turns()
    assert steps.current == "the response cache"
    await jump(3)

    assert not await running
    assert "the response cache did not end within 2 s and is given up" in caplog.text


async def test_a_step_that_is_cancelled_gives_the_fallback() -> None:
    poller = asyncio.ensure_future(asyncio.Event().wait())
    poller.cancel()

    assert await StopSteps().run("the poller", poller, 1.0, None) is None


async def test_work_on_its_own_thread_gives_its_result_and_its_error() -> None:
    def fail() -> None:
        raise SystemExit(3)

    assert await on_own_thread("naiad-test", threading.current_thread) is not threading.current_thread()
    with pytest.raises(RuntimeError, match="naiad-test raised SystemExit: 3"):
        await on_own_thread("naiad-test", fail)


async def test_a_thread_that_hangs_holds_up_no_other() -> None:
    release = threading.Event()

    hanging = [asyncio.ensure_future(on_own_thread("naiad-test", release.wait)) for _ in range(50)]
    assert await on_own_thread("naiad-test", int, "7") == 7

    release.set()
    await asyncio.gather(*hanging)
