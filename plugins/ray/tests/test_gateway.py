"""The gateway of a front desk while no control plane answers."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from naiad.reports import Readiness
from naiad_kit.frontends.embedding import Message
from naiad_ray.board import Result
from naiad_ray.gateway import Gateway
from naiad_ray.local import views
from naiad_ray.raw import GrpcRequest, RawAnswer

READY = GrpcRequest("/inference.GRPCInferenceService/ServerReady", b"")
INDEX = GrpcRequest("/inference.GRPCInferenceService/RepositoryIndex", b"")
STATISTICS = GrpcRequest("/inference.GRPCInferenceService/ModelStatistics", b"\x0a\x01m")
LOAD = GrpcRequest("/inference.GRPCInferenceService/RepositoryModelLoad", b"\x12\x01m")


class Control:
    """A control plane that answers with `result`, or is away."""

    def __init__(self) -> None:
        self.result: Result | None = None
        self.keys: list[object] = []
        self.publish = self

    async def remote(self, *arguments: object) -> Result:
        self.keys.append(arguments[2])
        if self.result is None:
            raise ConnectionError("the actor has ended")
        return self.result


class Local:
    """A server that answers with the readiness, or the number of statistics, that it would report."""

    server = SimpleNamespace(settings={})

    async def answer(self, request: GrpcRequest) -> RawAnswer:
        if request == STATISTICS:
            statistics = views.get().statistics
            return RawAnswer(0, body=json.dumps(None if statistics is None else len(statistics)).encode())
        readiness = views.get().readiness
        return RawAnswer(0, body=json.dumps(readiness.ready if readiness else None).encode())


async def send(gateway: Gateway, path: str, *events: Message) -> list[Message]:
    """The events that answer a POST by ASGI."""
    incoming, outgoing = iter(events), []

    async def receive() -> Message:
        return next(incoming)

    async def collect(event: Message) -> None:
        outgoing.append(event)

    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
    await gateway(scope, receive, collect)
    return outgoing


@pytest.fixture
def control() -> Control:
    return Control()


@pytest.fixture
def gateway(control: Control) -> Gateway:
    local: Any = Local()
    return Gateway(local, control, ("g",))


async def test_the_last_readiness_counts_while_no_control_plane_answers(gateway: Gateway, control: Control) -> None:
    control.result = Result({"a": Readiness(True, ())})
    first = await gateway.rpc(READY)
    control.result = None

    assert first == await gateway.rpc(READY) == RawAnswer(0, body=b"true")


@pytest.mark.parametrize("request_", [READY, INDEX, LOAD], ids=["readiness", "report", "order"])
async def test_a_call_that_needs_the_control_plane_says_that_it_is_being_replaced(
    gateway: Gateway, request_: GrpcRequest
) -> None:
    answer = await gateway.rpc(request_)

    assert answer.status == 14
    assert answer.text.startswith("the control plane is being replaced (ConnectionError)")


async def test_changes_of_different_settings_over_http_are_kept_beside_each_other(
    gateway: Gateway, control: Control
) -> None:
    control.result = Result({"a": RawAnswer(200)})

    for body in (b'{"log_info": false}', b'{"log_verbose_level": 1}'):
        answer = await send(gateway, "/v2/logging", {"type": "http.request", "body": body})
        assert answer[0]["status"] == 200

    assert control.keys == ["log settings of '': log_info", "log settings of '': log_verbose_level"]


async def test_an_order_whose_body_is_cut_off_is_not_carried_out(gateway: Gateway, control: Control) -> None:
    control.result = Result({"a": RawAnswer(200)})
    begun = {"type": "http.request", "body": b"{}", "more_body": True}

    answer = await send(gateway, "/v2/repository/models/m/load", begun, {"type": "http.disconnect"})

    assert (answer, control.keys) == ([], [])


class OneGroup:
    """A forwarder to the group `g`, which has every model."""

    def group_of(self, model: str) -> str:
        return "g"


@pytest.mark.parametrize(("report", "merged"), [("no such model", b"null"), ([], b"0")], ids=["unknown", "known"])
async def test_a_front_desk_answers_for_a_model_without_statistics_as_a_server_without_it(
    control: Control, report: object, merged: bytes
) -> None:
    local: Any = Local()
    forwarder: Any = OneGroup()
    control.result = Result({"a": report})

    answer = await Gateway(local, control, ("g",), forwarder).rpc(STATISTICS)

    assert answer.body == merged
