"""Request stages around versions of models, and parameters whose stages are not installed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from naiad.errors import InternalError, InvalidArgumentError, ModelNotReadyError, NaiadError, UnsupportedError
from naiad.extend import RequestStage, StageContext, Submit
from naiad.hookspecs import hookimpl
from naiad.server import Deliver, SubmittedRequest
from naiad.types import Request
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, rows, running


class Stage:
    """Writes its name into `passed` for each request, and then does what `act` says, if anything."""

    outstanding = 0
    host_only = False

    def __init__(self, name: str, passed: list[str], order: int = 0, act: Callable[[], None] | None = None) -> None:
        self.parameter = name
        self.order = order
        self.passed = passed
        self.failures: list[NaiadError] = []
        self._act = act

    def wrap(self, submit: Submit) -> Submit:
        return partial(self._submit, submit)

    def _submit(self, submit: Submit, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
        self.passed.append(f"{self.parameter} of {request.model_name}")
        if self._act is not None:
            self._act()
        return submit(request, deliver, streams)

    async def drained(self) -> None:
        self.passed.append("drained")

    def fail_all(self, error: NaiadError) -> None:
        self.passed.append("failed")


class Staging:
    """A plugin that offers these stages to each version."""

    def __init__(self, *stages: RequestStage | Any) -> None:
        self._stages = stages
        self.contexts: list[StageContext] = []

    @hookimpl
    def naiad_stages(self, context: StageContext) -> Sequence[RequestStage]:
        self.contexts.append(context)
        return list(self._stages)


async def test_a_request_with_the_parameter_passes_the_stages_in_their_order(
    tmp_path: Path, backend: FakeBackend
) -> None:
    passed: list[str] = []
    staging = Staging(Stage("b", passed, 20), Stage("a", passed, 10))

    async with running(tmp_path, backend, staging) as server:
        await server.infer(request("m", 1, parameters={"b": 1}))
        before = list(passed)
        await server.infer(request("m", 1))
        await server.infer(request("m", 1, parameters={"other": 1}))

    assert before == ["a of m", "b of m"]
    assert passed == [*before, "drained", "drained", "failed", "failed", "failed", "failed"]
    assert [(each.model.config.name, each.settings["id"]) for each in staging.contexts] == [("m", "naiad")]


@pytest.mark.parametrize("raised", [RuntimeError("of the stage"), SystemExit(3)])
async def test_what_a_stage_raises_fails_its_request_alone(
    tmp_path: Path, backend: FakeBackend, raised: BaseException
) -> None:
    def fail() -> None:
        raise raised

    async with running(tmp_path, backend, Staging(Stage("a", [], act=fail))) as server:
        with pytest.raises(InternalError, match="a request stage of model 'm' failed: "):
            await server.infer(request("m", 1, parameters={"a": 1}))
        response = await server.infer(request("m", 1))

    assert response.outputs["OUTPUT"].array.tolist() == [1]


async def test_an_error_of_a_stage_is_the_callers(tmp_path: Path, backend: FakeBackend) -> None:
    def refuse() -> None:
        raise InvalidArgumentError("not like this")

    async with running(tmp_path, backend, Staging(Stage("a", [], act=refuse))) as server:
        with pytest.raises(InvalidArgumentError, match="not like this"):
            await server.infer(request("m", 1, parameters={"a": 1}))


async def test_requests_that_a_stage_holds_are_outstanding(tmp_path: Path, backend: FakeBackend) -> None:
    stage = Stage("a", [])

    async with running(tmp_path, backend, Staging(stage)) as server:
        idle = server.has_work()
        stage.outstanding = 1
        busy = server.has_work()
        stage.outstanding = 0

    assert (idle, busy) == (False, True)


@pytest.mark.parametrize(
    ("offered", "reason"),
    [
        (7, "is no RequestStage: it lacks drained, fail_all, host_only, order"),
        (None, "naiad_stages of plugin 'Broken' raised RuntimeError: no stage today"),
    ],
)
async def test_a_stage_that_cannot_be_made_fails_the_load(
    tmp_path: Path, backend: FakeBackend, offered: object, reason: str
) -> None:
    class Broken:
        @hookimpl
        def naiad_stages(self, context: StageContext) -> Sequence[Any]:
            if offered is None:
                raise RuntimeError("no stage today")
            return [offered]

    async with running(tmp_path, backend, Broken()) as server:
        with pytest.raises(ModelNotReadyError, match=reason):
            await server.infer(request("m", 1))


async def test_a_request_that_asks_for_a_stage_that_is_not_installed_is_informed_what_to_install(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with running(tmp_path, backend) as server:
        with pytest.raises(
            UnsupportedError, match=r"parameter 'naiad_explain'\. It comes with naiad-explain: pip install"
        ):
            await server.infer(request("m", 1, parameters={"naiad_explain": True}))
        await asyncio.sleep(0)
        response = await server.infer(request("m", 1, parameters={"naiad_explain": "why the sky is blue"}))

    assert response.outputs["OUTPUT"].array.tolist() == [1]
    assert backend.batches[0].requests[0].parameters == {"naiad_explain": "why the sky is blue"}


async def test_a_stage_without_a_parameter_gets_checked_requests_of_clients_and_of_ensembles(
    tmp_path: Path, backend: FakeBackend
) -> None:
    passed: list[str] = []

    async with running(tmp_path, backend, Staging(Stage("", passed), Stage("a", passed))) as server:
        with pytest.raises(InvalidArgumentError, match="unexpected inference output"):
            await server.infer(request("m", 1, requested=("NONE",)))
        refused = list(passed)
        await server.infer(request("m", 1))
        response = await server.infer(request("m", 2, parameters={"a": True}))

    assert refused == []
    assert passed[:3] == [" of m", "a of m", " of m"]
    assert response.outputs["OUTPUT"].array.tolist() == [2]


@pytest.mark.parametrize("config", ["", "max_batch_size: 4"], ids=["single", "batched"])
async def test_what_a_stage_passes_on_is_what_the_model_gets(tmp_path: Path, config: str) -> None:
    class Doubling(Stage):
        def _submit(self, submit: Submit, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
            doubled = {name: Tensor.of(name, 2 * tensor.array) for name, tensor in request.inputs.items()}
            return submit(replace(request, inputs=doubled), deliver, streams)

    backend = FakeBackend()
    backend.write(tmp_path, "m", config)

    async with running(tmp_path, backend, Staging(Doubling("", []))) as server:
        response = await server.infer(rows("m", 3) if config else request("m", 3))

    assert response.outputs["OUTPUT"].array.ravel().tolist() == [6]
    assert [batch.size for batch in backend.batches] == [1]


async def test_a_stage_holds_a_request_and_counts_what_it_does_itself(tmp_path: Path, backend: FakeBackend) -> None:
    class Keeping(Stage):
        def _submit(self, submit: Submit, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
            (context,) = staging.contexts
            context.counters.answered(5_000)
            context.counters.rejected(1_000)
            context.counters.failed(1_000)
            return context.hold(request, deliver, lambda: context.counters.cancelled(2_000))

    staging = Staging(Keeping("", []))

    async with running(tmp_path, backend, staging) as server:
        held = server.submit(request("m", 1), lambda outcome: None)
        held.cancel()
        held.cancel()
        (counted,) = server.statistics("m")

    assert (counted.success.count, counted.success.ns) == (1, 5_000)
    assert (counted.fail.count, counted.fail.ns) == (3, 4_000)
    assert backend.batches == []
