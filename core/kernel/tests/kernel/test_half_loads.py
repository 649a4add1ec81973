"""Loads that fail half-way leave nothing open, and loads that take long leave the interpreter to others."""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from naiad._kernel.loading import SECONDS_TO_CLOSE
from naiad._kernel.native_worker import EAGER, SWITCH_INTERVAL
from naiad.backend import ModelContext, Placement
from naiad.errors import NaiadError
from naiad_config import ModelConfig

from .control import explicit
from .loops import jump
from .serving import Steered, SteeredInstance, SteeredModel, off_the_loop, write_model


async def test_a_model_that_no_version_can_be_made_of_is_closed(tmp_path: Path) -> None:
    closed: list[str] = []

    class Model(SteeredModel):
        @property
        def declares_outputs(self) -> bool:
            raise ValueError("cannot say")

        def close(self) -> None:
            closed.append("closed")
            raise OSError("nor can it be closed")

    backend = Steered(load=lambda context: Model(backend))
    write_model(tmp_path, "m")

    async with explicit(tmp_path, backend) as server:
        with pytest.raises(NaiadError, match="cannot say"):
            await server.load("m")

        assert closed == ["closed"]


@pytest.mark.parametrize("declares", [True, False], ids=["an instance fails", "the model fails"])
async def test_a_load_that_fails_ends_although_its_model_never_closes(tmp_path: Path, declares: bool) -> None:
    closing, gate = threading.Event(), threading.Event()

    class Model(SteeredModel):
        @property
        def declares_outputs(self) -> bool:
            if not declares:
                raise ValueError("it broke")
            return True

        def close(self) -> None:
            closing.set()
            gate.wait(10)

    def instantiate(placement: Placement) -> Any:
        raise ValueError("it broke")

    backend = Steered(load=lambda context: Model(backend), instantiate=instantiate)
    write_model(tmp_path, "m")

    async with explicit(tmp_path, backend) as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(lambda: closing.wait(10))
        await jump(SECONDS_TO_CLOSE + 1)
        with pytest.raises(NaiadError, match="it broke"):
            await loading

        assert [(entry.state, "it broke" in entry.reason) for entry in server.index()] == [("UNAVAILABLE", True)]
        gate.set()


async def test_a_load_asks_for_the_short_switch_interval_while_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, float] = {}

    def note(step: str, result: Any) -> Any:
        seen[step] = sys.getswitchinterval()
        return result

    def complete(context: ModelContext) -> ModelConfig:
        return note("complete", context.config)  # type: ignore[no-any-return]

    def instantiate(placement: Placement) -> Any:
        return note("instantiate", SteeredInstance(backend))

    backend = Steered(
        complete=complete, load=lambda context: note("load", SteeredModel(backend)), instantiate=instantiate
    )
    write_model(tmp_path, "m")
    before = sys.getswitchinterval()
    monkeypatch.setattr(SWITCH_INTERVAL, "allowed", True)

    async with explicit(tmp_path, backend) as server:
        await server.load("m")

        assert sys.getswitchinterval() == before
    assert seen == {step: pytest.approx(EAGER) for step in ("complete", "load", "instantiate")}
