"""Steps that fail, requests that do not fit, and callers who leave."""

import asyncio
import time
from collections.abc import Mapping

import numpy as np
import pytest

from naiad import Request, Tensor
from naiad.errors import DeadlineExceededError, InternalError, InvalidArgumentError, ModelFailedError, UnknownError
from naiad_kit.metrics import MetricsApi
from naiad_scheduler_ensemble.composition import EnsembleComposition
from naiad_testing.loops import until

from .parts import Parts, add, ask, times


async def test_an_error_keeps_its_kind_and_names_the_ensemble_and_the_step(chain: Parts) -> None:
    def refuse(batch):  # type: ignore[no-untyped-def]
        raise UnknownError("no such word")

    chain.functions["ten"] = refuse

    async with chain.serving() as server:
        with pytest.raises(UnknownError) as caught:
            await server.infer(ask("e"))

    assert str(caught.value) == "in ensemble 'e', no such word (step 1 of 'e', model 'ten')"


async def test_an_ensemble_that_fails_knows_the_times_of_all_its_steps(chain: Parts) -> None:
    def fail(batch):  # type: ignore[no-untyped-def]
        time.sleep(0.02)  # what is measured
        raise UnknownError("no such word")

    chain.functions["ten"] = fail
    outcomes: list[object] = []

    async with chain.serving() as server:
        call = server.submit(ask("e"), outcomes.append)
        await until(lambda: outcomes)

    assert isinstance(outcomes[0], UnknownError)
    assert sum(call.phases) > 20_000_000  # type: ignore[attr-defined]
    assert call.queue_ns > 0  # type: ignore[attr-defined]


async def test_an_error_on_the_way_through_two_ensembles_names_both(chain: Parts) -> None:
    chain.join("outer", "A", "D", "e A=A -> C=D")
    chain.functions["ten"] = lambda batch: {"z": 1}

    async with chain.serving() as server:
        with pytest.raises(ModelFailedError) as caught:
            await server.infer(ask("outer"))

    message = str(caught.value)
    assert message.startswith("in ensemble 'outer', in ensemble 'e', model 'ten' produced")
    assert message.endswith(" (step 1 of 'e', model 'ten') (step 0 of 'outer', model 'e')")


async def test_an_error_of_a_branch_takes_back_what_still_runs(chain: Parts) -> None:
    chain.add("add", "a b", "y", add)
    chain.join("d", "A", "D", "add a=B b=C -> y=D", "one x=A -> y=B", "ten x=A -> y=C")
    chain.functions["ten"] = lambda batch: {"z": 1}
    chain.hold("one")

    async with chain.serving() as server:
        with pytest.raises(ModelFailedError):
            await server.infer(ask("d"))
        chain.release("one")
        await until(lambda: chain.requests.get("one"))

    assert chain.requests["one"][0].cancelled


async def test_an_error_in_a_stream_leaves_room_for_the_next_request_alone(
    chain: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    chain.add("three", "x", "y", times(3), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "three x=A -> y=B", "ten x=B -> y=C", scheduling="max_inflight_requests: 1")
    whole = chain.functions["three"]

    def fail(batch):  # type: ignore[no-untyped-def]
        batch.sender(0).send(ModelFailedError("no such word"), final=True)
        return [None]

    async with chain.serving() as server:
        caplog.clear()
        chain.functions["three"] = fail
        with pytest.raises(ModelFailedError, match="no such word"):
            _ = [each async for each in server.stream(ask("s", 0))]
        version = chain.ensembles["s"]
        inflight = version._ensemble.inflight
        assert inflight is not None
        assert inflight._under_way == [0, 0]
        assert version.outstanding == 0
        assert caplog.records == []

        chain.functions["three"] = whole
        assert len([each async for each in server.stream(ask("s", 0)) if each.outputs]) == 3


async def test_what_a_first_step_refuses_at_once_is_raised_at_once(chain: Parts) -> None:
    async with chain.serving() as server:
        with pytest.raises(DeadlineExceededError, match=r"^in ensemble 'e', Deadline Exceeded.*\(step 0 of 'e'"):
            server.submit(ask("e", deadline=time.monotonic() - 1), lambda outcome: None)
        assert server.statistics("e")[0].fail.count == 1


async def test_a_request_that_does_not_fit_the_ensemble_is_refused_by_it(chain: Parts) -> None:
    async with chain.serving() as server:
        with pytest.raises(InvalidArgumentError, match="for model 'e'"):
            await server.infer(Request("e", {"A": Tensor.of("A", np.zeros(3, np.float32))}))


async def test_a_caller_who_leaves_takes_the_running_step_back(chain: Parts) -> None:
    chain.hold("ten")

    async with chain.serving() as server:
        task = asyncio.create_task(server.infer(ask("e")))
        await chain.held()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        chain.release("ten")
        await until(lambda: chain.requests.get("ten"))
        metrics = {each.name: each for each in server.service(MetricsApi).collect()}

    assert chain.requests["ten"][0].cancelled
    assert [
        sample.value
        for sample in metrics["nv_inference_request_failure"].samples
        if {("model", "e"), ("reason", "CANCELED")} <= set(sample.labels)
    ] == [1]


class Broken:
    """A version of a model whose submitting is broken, as no version should be."""

    name, version = "broken", 1

    def submit(self, request: Request, deliver: object, streams: bool = False) -> None:
        raise ValueError("as it should never be")


@pytest.mark.parametrize("index", [0, 1], ids=["at the beginning", "behind another step"])
async def test_a_fault_of_the_server_in_a_step_leaves_no_request_waiting(chain: Parts, index: int) -> None:
    async with chain.serving() as server:
        version = chain.ensembles["e"]
        ensemble = version._ensemble
        steps = list(ensemble.steps)
        steps[index] = Broken()
        sound, ensemble.steps = ensemble.steps, tuple(steps)
        with pytest.raises(InternalError, match=f"as it should never be .step {index} of 'e', model 'broken'"):
            await server.infer(ask("e"))

        assert version.outstanding == 0
        ensemble.steps = sound
        assert (await server.infer(ask("e", 1))).outputs["C"].array[0] == 12


class Faulty:
    """A composition whose runs begin, and fail at the first answer, as none should."""

    def __init__(self, composition: EnsembleComposition) -> None:
        self._composition = composition

    def __getattr__(self, name: str) -> object:
        return getattr(self._composition, name)

    def run(self, inputs: Mapping[str, Tensor], requested: tuple[str, ...]) -> "Faulty":
        return Faulty(self._composition.run(inputs, requested))

    def answered(self, *answer: object) -> None:
        raise ValueError("as it should never be")


async def test_a_fault_of_a_composition_leaves_no_request_waiting_and_no_room_taken(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")

    async with chain.serving() as server:
        version = chain.ensembles["b"]
        ensemble = version._ensemble
        sound, ensemble.composition = ensemble.composition, Faulty(ensemble.composition)
        for _ in range(2):
            with pytest.raises(InternalError, match="as it should never be"):
                await server.infer(ask("b"))

        assert version.outstanding == 0
        ensemble.composition = sound
        assert (await server.infer(ask("b", 1))).outputs["B"].array[0] == 2
