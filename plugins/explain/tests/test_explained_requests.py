"""Requests that ask for their own timeline."""

import asyncio
import json
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest

import naiad_explain
from naiad.backend import Answer, Batch, Reply
from naiad.types import Request, Response
from naiad_testing import in_loop
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, rows
from naiad_testing.scheduling import AllAtOnce, Scheduling
from naiad_testing.tracing import FakeTrace

from .serving import running

BATCHED = "max_batch_size: 8 dynamic_batching { }"


def explanation(response: Response) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(str(response.parameters["naiad_explain"]))
    return report


def asking(model: str = "m", **fields: Any) -> Request:
    return request(model, 1, parameters={"naiad_explain": True}, **fields)


async def test_a_request_gets_its_timeline_in_the_order_of_what_happened(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        report = explanation(await server.infer(asking()))

    (execution,) = report.pop("executions")
    phases = [execution.pop(name) for name in ("started", "input_done", "infer_done", "output_done")]
    times = [report.pop("received"), report.pop("queued"), *phases, report.pop("answered")]
    assert times == sorted(times)
    assert times[0] == 0 < times[1] < times[-1]
    assert report == {"model": "m", "version": 1}
    assert execution == {"instance": "m_0", "batch_size": 1, "requests": 1, "closed": "single"}


async def test_the_batch_and_the_reason_why_it_closed_are_reported(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", BATCHED)

    async with running(tmp_path, backend, Scheduling(AllAtOnce)) as server:
        plain = [asyncio.ensure_future(server.infer(rows("m", *values))) for values in ((1, 2), (3,))]
        response = await server.infer(rows("m", 4, parameters={"naiad_explain": True}))
        others = await asyncio.gather(*plain)

    (execution,) = explanation(response)["executions"]
    assert (execution["batch_size"], execution["requests"], execution["closed"]) == (4, 3, "all")
    assert [other.parameters for other in others] == [{}, {}]


async def test_the_model_does_not_see_the_parameter_and_the_caller_keeps_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    def answer(batch: Batch) -> Answer:
        seen.append(dict(batch.requests[0].parameters))
        return {"OUTPUT": batch.input("INPUT")}

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m")
    mine = request("m", 1, parameters={"naiad_explain": "true", "other": 5})

    async with running(tmp_path, backend) as server:
        responses = [await server.infer(mine) for _ in range(2)]

    assert seen == [{"other": 5}] * 2
    assert all("naiad_explain" in response.parameters for response in responses)
    assert mine.parameters == {"naiad_explain": "true", "other": 5}


@pytest.mark.parametrize("value", [False, "why the sky is blue"])
async def test_a_parameter_that_does_not_ask_is_the_models_own(tmp_path: Path, value: bool | str) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        response = await server.infer(request("m", 1, parameters={"naiad_explain": value}))

    assert response.parameters == {}
    assert backend.batches[0].requests[0].parameters == {"naiad_explain": value}


async def test_a_model_keeps_a_parameter_explain_of_its_own(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        response = await server.infer(request("m", 1, parameters={"explain": True}))

    assert response.parameters == {}
    assert backend.batches[0].requests[0].parameters == {"explain": True}


async def test_a_server_that_does_not_allow_it_answers_without(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend, allow_explain=False) as server:
        response = await server.infer(asking())

    assert response.parameters == {}
    assert backend.batches[0].requests[0].parameters == {}


async def test_requests_are_not_explained_unless_an_option_allows_it(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with in_loop.running(tmp_path, naiad_explain, backend) as server:
        response = await server.infer(asking())

    assert response.parameters == {}


async def test_parameters_of_the_response_stay(tmp_path: Path) -> None:
    backend = FakeBackend(answer=lambda batch: [Reply({"OUTPUT": batch.input("INPUT")}, {"tokens": 3})])
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        response = await server.infer(asking())

    assert list(response.parameters) == ["tokens", "naiad_explain"]


async def test_the_last_response_of_a_stream_has_the_timeline(tmp_path: Path) -> None:
    def answer(batch: Batch) -> Answer:
        sender = batch.sender(0)
        for _ in range(3):
            sender.send(Reply({"OUTPUT": batch.input("INPUT")}))
        sender.send(None, final=True)
        return [None]

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m", "model_transaction_policy { decoupled: true }")

    async with running(tmp_path, backend) as server:
        responses = [response async for response in server.stream(asking())]

    report = explanation(responses[-1])
    assert [("naiad_explain" in response.parameters, response.final) for response in responses] == [
        (False, False)
    ] * 3 + [(True, True)]
    assert report["responses"]["count"] == 3
    assert 0 < report["queued"] < report["responses"]["first"] <= report["responses"]["last"] < report["answered"]
    assert report["executions"][0]["instance"] == "m_0"


async def test_real_tracing_goes_on(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    trace = FakeTrace()

    async with running(tmp_path, backend) as server:
        response = await server.infer(asking(trace=trace))

    assert explanation(response)["version"] == trace.version == 1
    assert trace.events == [
        "REQUEST_START",
        "QUEUE_START",
        "COMPUTE_START",
        "COMPUTE_INPUT_END",
        "COMPUTE_OUTPUT_START",
        "COMPUTE_END",
        "INFER_RESPONSE_COMPLETE",
        "REQUEST_END",
    ]


async def test_times_count_from_when_the_frontend_had_the_request(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        response = await server.infer(asking(received_ns=monotonic_ns() - 5_000_000))

    assert explanation(response)["queued"] > 5000
