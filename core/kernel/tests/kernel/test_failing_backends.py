"""Backends that fail while a model loads: whatever they raise is the reason, and other models serve on."""

from pathlib import Path
from typing import Any

import pytest

from naiad.backend import ModelContext, Placement
from naiad.errors import ModelNotReadyError, NaiadError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running, write_model
from naiad_testing.steered import Steered

from .control import explicit
from .reasons import reason_of


def exits(*_: Any) -> Any:
    raise SystemExit(3)


def out_of_memory(*_: Any) -> Any:
    raise MemoryError("not enough for the weights")


def stops_iterating(*_: Any) -> Any:
    raise StopIteration


def interrupts(*_: Any) -> Any:
    raise KeyboardInterrupt


class OutOfThisWorld(BaseException):
    pass


def out_of_this_world(*_: Any) -> Any:
    raise OutOfThisWorld("beyond")


def plain(*_: Any) -> Any:
    raise ValueError("the file is corrupt at byte 7")


def recurses(*_: Any) -> Any:
    return recurses()


def unprintable(*_: Any) -> Any:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    raise Unprintable


FAILURES = {
    "SystemExit": exits,
    "MemoryError: not enough for the weights": out_of_memory,
    "StopIteration": stops_iterating,
    "KeyboardInterrupt": interrupts,
    "OutOfThisWorld: beyond": out_of_this_world,
    "ValueError: the file is corrupt at byte 7": plain,
    "RecursionError": recurses,
    "Unprintable": unprintable,
}


@pytest.mark.parametrize("message", FAILURES)
@pytest.mark.parametrize("step", ["complete", "load", "instantiate"])
async def test_whatever_a_backend_raises_is_the_reason_and_harms_nothing_else(
    tmp_path: Path, message: str, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = Steered()
    broken = Steered("broken", **{step: FAILURES[message]})  # type: ignore[arg-type]
    write_model(tmp_path, "good")
    write_model(tmp_path, "broken", backend="broken")

    async with running(tmp_path, good, broken) as server:
        reason = await reason_of(server)

    assert message in reason
    assert "Traceback" in caplog.text


async def test_a_model_that_cannot_be_completed_is_unavailable_in_each_version_for_the_latest_reason(
    tmp_path: Path,
) -> None:
    write_model(tmp_path, "broken", "version_policy { all { } }", backend="broken", versions=(1, 2))
    async with explicit(tmp_path, Steered("broken", complete=plain)) as server:
        with pytest.raises(NaiadError):
            await server.load("broken")
        entries = [(entry.version, entry.state) for entry in server.index()]
        with pytest.raises(ModelNotReadyError, match=r"'broken' version 2 .*corrupt at byte 7"):
            server.model_metadata("broken", 2)

        (tmp_path / "broken" / "config.pbtxt").write_text("junk: 1")
        with pytest.raises(NaiadError):
            await server.load("broken")
        reasons = {entry.reason for entry in server.index()}

    assert entries == [(1, "UNAVAILABLE"), (2, "UNAVAILABLE")]
    assert len(reasons) == 1
    assert "unknown key 'junk'" in reasons.pop()


@pytest.mark.parametrize("answer", [None, {}, "config"])
async def test_a_completion_that_gives_no_configuration_is_the_reason(tmp_path: Path, answer: Any) -> None:
    write_model(tmp_path, "good")
    write_model(tmp_path, "broken", backend="broken")

    async with running(tmp_path, Steered(), Steered("broken", complete=lambda context: answer)) as server:
        assert await reason_of(server)


async def test_one_instance_that_fails_fails_the_version_and_closes_the_others(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "instance_group { count: 2 }")
    real = backend.load

    def load(context: ModelContext) -> Any:
        model = real(context)
        instantiate = model.instantiate

        def second_fails(placement: Placement) -> Any:
            if placement.name.endswith("_1"):
                raise MemoryError("one is enough")
            return instantiate(placement)

        model.instantiate = second_fails  # type: ignore[method-assign, assignment]
        return model

    backend.load = load  # type: ignore[method-assign]

    async with running(tmp_path, backend) as server:
        (entry,) = server.index()

    assert "MemoryError: one is enough" in entry.reason
    assert backend.events[-2:] == ["close m_0_0", "close m 1"]


async def test_one_version_that_fails_fails_the_model_and_frees_the_others(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "version_policy { all { } }", versions=(1, 2))
    real = backend.load

    def load(context: ModelContext) -> Any:
        if context.version == 2:
            raise ValueError("corrupt")
        return real(context)

    backend.load = load  # type: ignore[method-assign]

    async with running(tmp_path, backend) as server:
        index = server.index()
        with pytest.raises(ModelNotReadyError, match="version 2: ValueError: corrupt"):
            await server.infer(request("m", 1))

    assert [(entry.version, entry.state) for entry in index] == [(1, "UNAVAILABLE"), (2, "UNAVAILABLE")]
    assert "close m 1" in backend.events
