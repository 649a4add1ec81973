"""`ready()` of an instance may block: a thread calls it, and the event loop goes on."""

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from naiad import Server
from naiad._engine import readiness
from naiad._engine.readiness import ReadyCheck
from naiad.errors import ModelNotReadyError
from naiad_testing.in_loop import request, running, write_model
from naiad_testing.loops import until
from naiad_testing.steered import Steered, SteeredInstance


def late() -> float:
    """Later than any answer."""
    return monotonic() + 30.0


class Gated:
    """A `ready` that waits until the test opens its gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.calls = 0
        self.answer = ""

    def __call__(self) -> str:
        self.calls += 1
        assert self.gate.wait(30)
        return self.answer


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop waits for no answer, so that no test does."""
    monkeypatch.setattr(readiness, "PATIENCE", 0.0)


def instance_with(ready: Callable[[], object]) -> Steered:
    class Instance(SteeredInstance):
        @property
        def ready(self) -> Callable[[], object]:
            return ready

    backend = Steered(instantiate=lambda placement: Instance(backend))
    return backend


async def test_a_ready_that_blocks_blocks_no_request(tmp_path: Path, at_once: None) -> None:
    ready = Gated()
    write_model(tmp_path, "m")

    async with running(tmp_path, instance_with(ready)) as server:
        unknown = [server.model_ready("m") for _ in range(5)]
        response = await server.infer(request("m", 1.0))
        ready.gate.set()
        await until(lambda: server.model_ready("m").ready)

    assert {each.reasons for each in unknown} == {("instance 'm_0' is not ready: ready() has not answered yet",)}
    assert response.outputs["OUTPUT"].array.tolist() == [1.0]


def test_one_call_at_a_time_runs() -> None:
    ready = Gated()
    check = ReadyCheck(ready)

    for _ in range(5):
        check.begin()
        check.reason(until=0.0)
    ready.gate.set()

    assert ready.calls == 1


def test_the_previous_answer_counts_while_a_slow_one_is_awaited() -> None:
    ready = Gated()
    check = ReadyCheck(ready)
    ready.answer = "warming up"
    ready.gate.set()
    check.begin()
    assert check.reason(until=late()) == "warming up"

    ready.gate.clear()
    check.begin()
    during = check.reason(until=0.0)
    ready.gate.set()

    assert during == "warming up"


def test_a_ready_that_has_not_answered_for_long_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(readiness, "monotonic", lambda: now[0])
    ready = Gated()
    check = ReadyCheck(ready)
    check.begin()
    now[0] = readiness.LIMIT + 1

    reason = check.reason(until=0.0)
    ready.gate.set()

    assert reason == "ready() has not answered for 5 seconds"


def test_several_instances_are_asked_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def ready() -> str:
        together.wait(30)
        return ""

    checks = [ReadyCheck(ready) for _ in range(3)]
    for check in checks:
        check.begin()

    assert [check.reason(until=late()) for check in checks] == [""] * 3


async def test_an_instance_that_answers_later_whether_it_is_ready_is_refused(tmp_path: Path) -> None:
    class Sleepy(SteeredInstance):
        async def ready(self) -> str:
            return ""

    backend = Steered(instantiate=lambda placement: Sleepy(backend))
    write_model(tmp_path, "m")
    server = Server(model_repository=[tmp_path], plugins=[backend])

    with pytest.raises(ModelNotReadyError, match=r"instance 'm_0': ready\(\) is async def; write def ready\(self\)"):
        await server.start()


def test_a_ready_that_gives_a_coroutine_is_not_ready_and_says_why() -> None:
    async def answer() -> str:
        return ""

    check = ReadyCheck(lambda: answer())
    check.begin()

    assert check.reason(until=late()) == readiness.ASYNC_READY


def test_a_ready_without_a_thread_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading, "Thread", no_thread)
    check = ReadyCheck(lambda: "")
    check.begin()

    assert check.reason(until=0.0).startswith(
        "ready() could not be called: RuntimeError: can't start new thread; raise 'ulimit -u' of the user, or the "
        "limit of processes"
    )
