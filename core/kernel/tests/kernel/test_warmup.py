"""The seam of warm-ups: what plugins execute on every new instance before its version serves."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from naiad.backend import Batch, Instance, ModelContext
from naiad.errors import InvalidArgumentError, NaiadError
from naiad.hookspecs import hookimpl
from naiad.types import Response
from naiad.warmup import VersionParts, Warmup
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, running


class Warming:
    """A plugin, and its own warm-up: it executes one request, and does with the outcome what a test says."""

    def __init__(self, act: Callable[[Response | NaiadError | None], None] = lambda outcome: None) -> None:
        self.names: list[str] = []
        self.progress = ""
        self._act = act

    @hookimpl
    def naiad_warmup(self, context: ModelContext) -> Sequence[Warmup]:
        return [self]

    def warm_up(self, instance: Instance, name: str, parts: VersionParts) -> None:
        self.names.append(name)
        self.progress = f"{name} is cold"
        seen, size = parts.validate(request("m", 7))
        batch = Batch([seen], [size], layout=parts.layout)
        (outcome,) = parts.read(instance.execute(batch), batch)
        self._act(outcome)


async def test_every_instance_is_warmed_up_before_the_version_is_ready(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "m", "instance_group { count: 2 }")
    outcomes: list[object] = []
    warming = Warming(outcomes.append)

    async with running(tmp_path, backend, warming) as server:
        assert server.ready().ready

    assert sorted(warming.names) == ["m_0_0", "m_0_1"]
    assert [each.outputs["OUTPUT"].array.tolist() for each in outcomes if isinstance(each, Response)] == [[7], [7]]


async def test_the_progress_is_the_reason_of_a_version_that_loads(tmp_path: Path, backend: FakeBackend) -> None:
    backend.hold()

    async with running(tmp_path, backend, Warming(), model_control_mode="explicit") as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(backend.wait_until_held)
        (entry,) = server.index()
        backend.release()
        await loading
        (ready,) = server.index()

    assert (entry.state, entry.reason) == ("LOADING", "m_0 is cold")
    assert (ready.state, ready.reason) == ("READY", "")


def refusing(outcome: object) -> None:
    raise InvalidArgumentError("too cold")


def leaving(outcome: object) -> None:
    raise SystemExit("left")


@pytest.mark.parametrize(("act", "reason"), [(refusing, "too cold"), (leaving, "SystemExit: left")])
async def test_a_warm_up_that_fails_fails_the_load_and_leaves_nothing_open(
    tmp_path: Path, backend: FakeBackend, act: Callable[[object], None], reason: str
) -> None:
    async with running(tmp_path, backend, Warming(act)) as server:
        (entry,) = server.index()

    assert entry.state == "UNAVAILABLE"
    assert reason in entry.reason
    assert sorted(event for event in backend.events if event.startswith("close")) == ["close m 1", "close m_0"]


async def test_a_replaced_instance_is_warmed_up_too(tmp_path: Path) -> None:
    def answer(batch: Batch) -> dict:
        if batch.input("INPUT")[0] == 666:
            raise SystemExit("gone")
        return {"OUTPUT": batch.input("INPUT")}

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m")
    warming = Warming()

    async with running(tmp_path, backend, warming) as server:
        await asyncio.gather(server.infer(request("m", 666)), return_exceptions=True)
        await server.infer(request("m", 1))

    assert warming.names == ["m_0", "m_0"]


async def test_a_progress_that_raises_ends_nothing(tmp_path: Path, backend: FakeBackend) -> None:
    class Silent(Warming):
        @property
        def progress(self) -> str:
            if self.names:
                raise SystemExit("no words")
            return ""

        @progress.setter
        def progress(self, value: str) -> None:
            return None

    backend.hold()

    async with running(tmp_path, backend, Silent(), model_control_mode="explicit") as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(backend.wait_until_held)
        (entry,) = server.index()
        backend.release()
        await loading

    assert (entry.state, entry.reason) == ("LOADING", "")
