"""Ensembles on a server: values go from step to step, and whatever a request says goes with it."""

import asyncio
import time
from dataclasses import fields

import numpy as np
import pytest

from naiad import Request
from naiad.backend import Reply
from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad_kit.metrics import MetricsApi
from naiad_statistics.reports import Duration
from naiad_testing.loops import until
from naiad_testing.tracing import FakeTrace

from .parts import Parts, add, ask, infer, plus


async def test_values_go_from_step_to_step(chain: Parts) -> None:
    async with chain.serving() as server:
        assert await infer(server, ask("e", 1)) == {"C": 12}


async def test_a_diamond_joins_its_branches(chain: Parts) -> None:
    chain.add("add", "a b", "y", add)
    chain.join("d", "A", "D", "add a=B b=C -> y=D", "one x=A -> y=B", "ten x=A -> y=C")

    async with chain.serving() as server:
        assert await infer(server, ask("d", 1)) == {"D": 13}


async def test_an_ensemble_can_be_a_step(chain: Parts) -> None:
    chain.join("outer", "A", "D", "e A=A -> C=B", "one x=B -> y=D")

    async with chain.serving() as server:
        assert await infer(server, ask("outer", 1)) == {"D": 13}


async def test_what_was_not_asked_for_is_not_run(chain: Parts) -> None:
    chain.join("both", "A", "B C", "one x=A -> y=B", "ten x=A -> y=C")

    async with chain.serving() as server:
        assert await infer(server, ask("both", 1, requested=("C",))) == {"C": 11}

    assert "one" not in chain.requests


async def test_tensors_are_handed_on_without_a_copy(chain: Parts) -> None:
    array = np.arange(4, dtype=np.float32)
    seen: list[np.ndarray] = []
    chain.functions["one"] = lambda batch: {"y": array}
    chain.functions["ten"] = lambda batch: seen.append(batch.input("x")) or {"y": array}

    async with chain.serving() as server:
        response = await server.infer(ask("e"))

    assert np.shares_memory(seen[0], array)
    assert np.shares_memory(response.outputs["C"].array, array)


async def test_everything_a_request_says_goes_to_every_step(chain: Parts) -> None:
    caller, deadline = object(), time.monotonic() + 60
    request = ask(
        "e",
        id="a",
        priority=2,
        parameters={"lang": "de"},
        timeout_microseconds=10**7,
        deadline=deadline,
        correlation_id=7,
        sequence_start=True,
        sequence_end=True,
        caller=caller,
    )
    names = {each.name for each in fields(Request)} - {
        "model_name",
        "inputs",
        "requested",
        "version",
        "trace",
        "cancelled",
        "on_cancelled",
        "transfer",
    }

    async with chain.serving() as server:
        await server.infer(request)

    for name in ("one", "ten"):
        (seen,) = chain.requests[name]
        assert {each: getattr(seen, each) for each in names} == {each: getattr(request, each) for each in names}


async def test_a_step_may_change_the_sequence_for_those_behind_it(chain: Parts) -> None:
    chain.functions["one"] = lambda batch: [
        Reply({"y": batch.input("x")}, {"sequence_id": 42, "sequence_start": True, "sequence_end": False})
    ]

    async with chain.serving() as server:
        response = await server.infer(ask("e", correlation_id=7, sequence_end=True))
        outside = await server.infer(ask("e"))

    first, second = chain.requests["one"][0], chain.requests["ten"][0]
    assert (first.correlation_id, first.sequence_start, first.sequence_end) == (7, False, True)
    assert (second.correlation_id, second.sequence_start, second.sequence_end) == (42, True, False)
    assert response.parameters == {"sequence_id": 42, "sequence_start": True, "sequence_end": False}
    assert outside.parameters == response.parameters


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"sequence_id": 1}, (1, False, False)),
        ({"sequence_start": True}, (7, True, False)),
        ({"sequence_end": True}, (7, False, True)),
    ],
)
async def test_one_flag_of_the_sequence_leaves_the_others(
    chain: Parts, flags: dict[str, int | bool], expected: tuple[int, bool, bool]
) -> None:
    chain.functions["one"] = lambda batch: [Reply({"y": batch.input("x")}, flags)]

    async with chain.serving() as server:
        await server.infer(ask("e", correlation_id=7))

    second = chain.requests["ten"][0]
    assert (second.correlation_id, second.sequence_start, second.sequence_end) == expected


@pytest.mark.parametrize("invalid", [True, 1.5])
async def test_a_sequence_id_that_is_none_leaves_that_of_the_request(chain: Parts, invalid: bool | float) -> None:
    chain.functions["one"] = lambda batch: [Reply({"y": batch.input("x")}, {"sequence_id": invalid})]

    async with chain.serving() as server:
        response = await server.infer(ask("e", correlation_id=7))

    assert chain.requests["ten"][0].correlation_id == 7
    assert response.parameters["sequence_id"] == 7


async def test_an_input_that_is_an_output_comes_back_after_submit_has_returned(chain: Parts) -> None:
    chain.join("p", "A", "A B", "one x=A -> y=B")
    came: list[object] = []

    async with chain.serving() as server:
        server.submit(ask("p", 5, requested=("A",)), came.append)
        before = list(came)
        await until(lambda: came)
        cancelled = server.submit(ask("p", 5, requested=("A",)), came.append)
        cancelled.cancel()
        for _ in range(5):
            await asyncio.sleep(0)

    assert before == []
    assert [float(response.outputs["A"].array[0]) for response in came] == [5]
    assert "one" not in chain.requests


async def test_an_optional_input_may_lack(chain: Parts) -> None:
    chain.add("maybe", "a b?", "y", lambda batch: {"y": batch.input("a") * (3 if "b" in batch.input_names else 2)})
    chain.join("o", "A B?", "C", "maybe a=A b=B -> y=C")

    async with chain.serving() as server:
        assert await infer(server, ask("o", 5)) == {"C": 10}


async def test_an_output_that_a_step_leaves_out_and_another_needs_is_an_error(chain: Parts) -> None:
    chain.add("two", "x", "y z", lambda batch: [Reply({"y": batch.input("x")})])
    chain.add("add", "a b", "y", add)
    chain.join("o", "A", "D", "two x=A -> y=B z=C", "add a=B b=C -> y=D")

    async with chain.serving() as server:
        with pytest.raises(Exception, match=r"^in ensemble 'o', \[request id: r1\] unexpected deadlock"):
            await server.infer(ask("o", id="r1"))


async def test_batches_cross_to_models_without_them_and_back(chain: Parts) -> None:
    chain.add("rows", "x", "y", plus(100), "max_batch_size: 8")
    chain.join("b", "A", "D", "rows x=A -> y=B", "one x=B -> y=C", "rows x=C -> y=D", more="max_batch_size: 8")

    async with chain.serving() as server:
        response = await server.infer(ask("b", 1, rows=1))
        with pytest.raises(InvalidArgumentError, match=r"^in ensemble 'b', .* input 'x' for model 'one'"):
            await server.infer(ask("b", 1, rows=2))

    assert response.outputs["D"].shape == (1, 4)
    assert response.outputs["D"].array.tolist() == [[202.0] * 4]


async def test_statistics_are_one_inference_and_sums_over_the_steps(chain: Parts) -> None:
    async with chain.serving() as server:
        await server.infer(ask("e"))
        await server.infer(ask("e"))
        (whole,), (one,), (ten,) = (server.statistics(name) for name in ("e", "one", "ten"))

    assert (whole.inference_count, whole.execution_count, whole.success.count) == (2, 2, 2)
    for name in ("queue", "compute_input", "compute_infer", "compute_output"):
        first, second = getattr(one, name), getattr(ten, name)
        assert getattr(whole, name) == Duration(2, first.ns + second.ns)
    assert whole.success.ns > one.success.ns


async def test_a_failed_request_counts_as_other_beside_what_its_step_counts(chain: Parts) -> None:
    chain.functions["ten"] = lambda batch: {"z": 1}

    async with chain.serving() as server:
        with pytest.raises(ModelFailedError):
            await server.infer(ask("e"))
        failures = next(
            each for each in server.service(MetricsApi).collect() if each.name == "nv_inference_request_failure"
        )

    counted = {(dict(each.labels)["model"], dict(each.labels)["reason"]) for each in failures.samples if each.value}
    assert counted == {("e", "OTHER"), ("ten", "BACKEND")}


async def test_each_step_has_a_child_of_the_trace(chain: Parts) -> None:
    trace = FakeTrace("e")

    async with chain.serving() as server:
        await server.infer(ask("e", id="r", trace=trace))

    assert trace.events == ["REQUEST_START", "QUEUE_START", "INFER_RESPONSE_COMPLETE", "REQUEST_END"]
    assert list(trace.shapes) == ["TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT"]
    assert [(child.model, child.version, child.request_id) for child in trace.children] == [
        ("one", 1, "r"),
        ("ten", 1, "r"),
    ]
    assert all(child.events[-2:] == ["REQUEST_END", "end"] for child in trace.children)


async def test_labels_come_from_the_step_that_makes_the_output(chain: Parts) -> None:
    chain.write(
        "one",
        'backend: "parts" input { name: "x" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "y" data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }',
    )
    (chain.root / "one" / "labels.txt").write_text("cat\ndog\n")
    chain.join("l", "A", "B", "one x=A -> y=B")

    async with chain.serving() as server:
        assert server.labels("l", "B") == ("cat", "dog")
