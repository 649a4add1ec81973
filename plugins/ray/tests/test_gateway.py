"""The gateway of a front desk while no control plane answers."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from naiad.reports import Readiness
from naiad_ray.board import Result
from naiad_ray.gateway import Gateway
from naiad_ray.local import views
from naiad_ray.raw import GrpcRequest, RawAnswer

READY = GrpcRequest("/inference.GRPCInferenceService/ServerReady", b"")
INDEX = GrpcRequest("/inference.GRPCInferenceService/RepositoryIndex", b"")
LOAD = GrpcRequest("/inference.GRPCInferenceService/RepositoryModelLoad", b"\x12\x01m")


class Control:
    """A control plane that answers with `result`, or is away."""

    def __init__(self) -> None:
        self.result: Result | None = None
        self.publish = self

    async def remote(self, *_: object) -> Result:
        if self.result is None:
            raise ConnectionError("the actor has ended")
        return self.result


class Local:
    """A server that answers with the readiness that it would report."""

    server = SimpleNamespace(settings={})

    async def answer(self, _: GrpcRequest) -> RawAnswer:
        readiness = views.get().readiness
        return RawAnswer(0, body=json.dumps(readiness.ready if readiness else None).encode())


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
