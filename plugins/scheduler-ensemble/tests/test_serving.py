"""Ensembles on a server: values go from step to step, and whatever a request says goes with it."""

import asyncio
import time
from dataclasses import fields

import numpy as np
import pytest

from naiad import Request, Tensor
from naiad.backend import Reply
from naiad.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ModelFailedError,
    UnavailableError,
    UnknownError,
    UnsupportedError,
)
from naiad.reports import Duration
from naiad.testing.tracing import FakeTrace

from .parts import Parts, add, ask, infer, plus, times, until


@pytest.fixture
def chain(parts: Parts) -> Parts:
    """The ensemble e: plus one, then plus ten."""
    parts.add("one", "x", "y", plus(1))
    parts.add("ten", "x", "y", plus(10))
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")
    return parts


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
    made = np.arange(4, dtype=np.float32)
    seen: list[np.ndarray] = []
    chain.functions["one"] = lambda batch: {"y": made}
    chain.functions["ten"] = lambda batch: seen.append(batch.input("x")) or {"y": made}

    async with chain.serving() as server:
        response = await server.infer(ask("e"))

    assert np.shares_memory(seen[0], made)
    assert np.shares_memory(response.outputs["C"].array, made)


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


async def test_an_input_that_is_an_output_comes_back_after_submit_has_returned(chain: Parts) -> None:
    chain.join("p", "A", "A B", "one x=A -> y=B")
    came: list[object] = []

    async with chain.serving() as server:
        server.submit(ask("p", 5, requested=("A",)), came.append)
        before = list(came)
        await until(lambda: came)
        left = server.submit(ask("p", 5, requested=("A",)), came.append)
        left.cancel()
        for _ in range(5):
            await asyncio.sleep(0)

    assert before == []
    assert [float(response.outputs["A"].array[0]) for response in came] == [5]
    assert "one" not in chain.requests


async def test_an_error_keeps_its_kind_and_names_the_ensemble(chain: Parts) -> None:
    def refuse(batch):  # type: ignore[no-untyped-def]
        raise UnknownError("no such word")

    chain.functions["ten"] = refuse

    async with chain.serving() as server:
        with pytest.raises(UnknownError) as caught:
            await server.infer(ask("e"))

    assert str(caught.value) == "in ensemble 'e', no such word"


async def test_an_error_on_the_way_through_two_ensembles_names_both(chain: Parts) -> None:
    chain.join("outer", "A", "D", "e A=A -> C=D")
    chain.functions["ten"] = lambda batch: {"z": 1}

    async with chain.serving() as server:
        with pytest.raises(ModelFailedError, match=r"^in ensemble 'outer', in ensemble 'e', model 'ten' produced"):
            await server.infer(ask("outer"))


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


async def test_what_a_first_step_refuses_at_once_is_raised_at_once(chain: Parts) -> None:
    async with chain.serving() as server:
        with pytest.raises(DeadlineExceededError, match=r"^in ensemble 'e', Deadline Exceeded"):
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
        metrics = {each.name: each for each in server.metrics.collect()}

    assert chain.requests["ten"][0].cancelled
    assert [
        sample.value
        for sample in metrics["nv_inference_request_failure"].samples
        if {("model", "e"), ("reason", "CANCELED")} <= set(sample.labels)
    ] == [1]


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
        with pytest.raises(Exception, match=r"^in ensemble 'o', \[request id: r1\] unexpected deadlock, at least one"):
            await server.infer(ask("o", id="r1"))


async def test_batches_cross_to_models_without_them_and_back(chain: Parts) -> None:
    chain.add("rows", "x", "y", plus(100), "max_batch_size: 8")
    chain.join("b", "A", "D", "rows x=A -> y=B", "one x=B -> y=C", "rows x=C -> y=D", more="max_batch_size: 8")

    async with chain.serving() as server:
        response = await server.infer(ask("b", 1, rows=1))
        with pytest.raises(
            InvalidArgumentError, match=r"^in ensemble 'b', unexpected shape for input 'x' for model 'one'"
        ):
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
        failures = next(each for each in server.metrics.collect() if each.name == "nv_inference_request_failure")

    counted = {(dict(each.labels)["model"], dict(each.labels)["reason"]) for each in failures.samples if each.value}
    assert counted == {("e", "OTHER"), ("ten", "BACKEND")}


async def test_each_step_has_a_child_of_the_trace(chain: Parts) -> None:
    trace = FakeTrace("e")

    async with chain.serving() as server:
        await server.infer(ask("e", id="r", trace=trace))

    assert trace.told == ["REQUEST_START", "QUEUE_START", "INFER_RESPONSE_COMPLETE", "REQUEST_END"]
    assert [(child.model, child.version, child.request_id) for child in trace.children] == [
        ("one", 1, "r"),
        ("ten", 1, "r"),
    ]
    assert all(child.told[-2:] == ["REQUEST_END", "end"] for child in trace.children)


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


async def test_a_decoupled_step_makes_the_ensemble_decoupled(chain: Parts) -> None:
    chain.add("three", "x", "y", times(3), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "three x=A -> y=B", "ten x=B -> y=C")

    async with chain.serving() as server:
        policy = server.model_config("s").model_transaction_policy
        with pytest.raises(UnsupportedError, match="doesn't support models with decoupled transaction policy"):
            await server.infer(ask("s"))
        responses = [each async for each in server.stream(ask("s", 0))]

    assert policy is not None
    assert policy.decoupled
    values = [float(each.outputs["C"].array[0]) for each in responses if each.outputs]
    assert values == [10, 11, 12]
    assert [each.final for each in responses].count(True) == 1
    assert responses[-1].final


async def test_a_decoupled_ensemble_counts_its_responses(chain: Parts) -> None:
    chain.add("three", "x", "y", times(3), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "three x=A -> y=C")

    async with chain.serving() as server:
        async for _ in server.stream(ask("s", 0)):
            pass
        (statistics,) = server.statistics("s")

    successes = [each.success.count for each in statistics.response_stats.values()]
    assert (statistics.inference_count, sum(successes)) == (1, 3)


async def test_a_caller_who_reads_slowly_holds_the_decoupled_step_back(chain: Parts) -> None:
    chain.add("many", "x", "y", times(5000), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "many x=A -> y=B", "one x=B -> y=C")

    async with chain.serving() as server:
        stream = server.stream(ask("s", 0))
        await anext(stream)
        before = len(chain.requests["one"])
        for _ in range(2000):
            await asyncio.sleep(0)
        stalled = len(chain.requests["one"])
        count = 1 + sum([bool(each.outputs) async for each in stream])

    assert count == 5000
    assert before <= stalled < 1000


async def test_max_inflight_requests_holds_back_over_all_requests(chain: Parts) -> None:
    chain.add("slow", "x", "y", plus(1), "instance_group { count: 4 }")
    chain.join("b", "A", "B", "slow x=A -> y=B", scheduling="max_inflight_requests: 2")
    chain.hold("slow")

    async with chain.serving() as server:
        tasks = [asyncio.create_task(server.infer(ask("b"))) for _ in range(4)]
        await chain.held(2)
        outstanding = next(
            each for each in server.metrics.collect() if each.name == "nv_inference_pending_request_count"
        )
        waiting = {dict(each.labels)["model"]: each.value for each in outstanding.samples}
        chain.release("slow")
        await asyncio.gather(*tasks)

    assert waiting["b"] == 2
    assert len(chain.requests["slow"]) == 4


async def test_who_leaves_while_waiting_for_room_is_forgotten(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        first, second, third = (asyncio.create_task(server.infer(ask("b", n))) for n in (1, 2, 3))
        await chain.held()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        chain.release("one")
        await asyncio.gather(first, third)

    assert [float(each.inputs["x"].array[0]) for each in chain.requests["one"]] == [1, 3]


async def test_a_deadline_counts_while_a_request_waits_for_room(chain: Parts) -> None:
    chain.join("b", "A", "B", "one x=A -> y=B", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        first = asyncio.create_task(server.infer(ask("b")))
        await chain.held()
        with pytest.raises(DeadlineExceededError, match="still waited for room at a step"):
            await server.infer(ask("b", deadline=time.monotonic() + 0.01))
        chain.release("one")
        await first


async def test_a_decoupled_step_waits_for_room_behind_it(chain: Parts) -> None:
    chain.add("many", "x", "y", times(1000), "model_transaction_policy { decoupled: true }")
    chain.join("s", "A", "C", "many x=A -> y=B", "one x=B -> y=C", scheduling="max_inflight_requests: 1")
    chain.hold("one")

    async with chain.serving() as server:
        stream = server.stream(ask("s", 0))
        first = asyncio.ensure_future(anext(stream))
        await chain.held()
        for _ in range(2000):
            await asyncio.sleep(0)
        held = sum(len(each._held) for each in server._models.find("s")._calls)
        chain.release("one")
        await first
        count = 1 + sum([bool(each.outputs) async for each in stream])

    assert count == 1000
    assert held < 200


async def test_a_server_that_stops_answers_what_its_ensembles_took_in(chain: Parts) -> None:
    chain.hold("one")

    async with chain.serving() as server:
        task = asyncio.create_task(server.infer(ask("e", 1)))
        await chain.held()
        stopping = asyncio.create_task(server.stop())
        await until(lambda: not server.ready().ready)
        with pytest.raises(UnavailableError):
            await server.infer(ask("e", 1))
        chain.release("one")
        response = await task
        assert await stopping

    assert float(response.outputs["C"].array[0]) == 12
