"""Loads that fail half-way leave nothing open."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from naiad._lifecycle.loading import SECONDS_TO_CLOSE
from naiad.backend import Placement
from naiad.errors import NaiadError
from naiad_testing.in_loop import off_the_loop, write_model
from naiad_testing.loops import jump
from naiad_testing.steered import Steered, SteeredModel

from .control import explicit


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
