"""Versions of models whose readiness is asked for, and the standard health service."""

import asyncio

import pytest

from naiad.errors import InvalidArgumentError, ModelNotReadyError
from naiad.reports import Readiness
from naiad_grpc.messages import HEALTH_PACKAGE, SERVICES, message_class
from naiad_grpc.service.health import HealthRpcs
from naiad_grpc.statuses import Code, RpcError

REQUEST = message_class("HealthCheckRequest", HEALTH_PACKAGE)
RESPONSE = message_class("HealthCheckResponse", HEALTH_PACKAGE)
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


@pytest.mark.parametrize("version", ["one", "-1", "0", "9" * 30, "¹"])
def test_a_version_that_is_none_is_refused(ask, version):
    with pytest.raises(InvalidArgumentError, match="version should be an integral value > 0"):
        ask(HealthRpcs, "ModelReady", None, name="m", version=version)


@pytest.mark.parametrize(("name", "version"), [("nothing", ""), ("nothing", "1"), ("m", "7"), ("", "")])
def test_a_model_that_is_not_there_is_not_ready(ask, name, version):
    answer = ask(HealthRpcs, "ModelReady", None, name=name, version=version)

    assert not answer.ready


def test_a_model_that_failed_to_load_is_not_ready(ask, server):
    server.failure = ModelNotReadyError("Request for unknown model: 'm' has no available versions")

    answer = ask(HealthRpcs, "ModelReady", None, name="m")

    assert not answer.ready


async def checked(rpcs, service=""):
    (check,) = (each for each in rpcs.operations() if each.path == "/grpc.health.v1.Health/Check")
    answer = await check.answer(REQUEST(service=service).SerializeToString(), None)
    return RESPONSE.FromString(answer).status


def test_a_health_check_says_serving_while_the_server_is_ready_and_goes_on(server):
    stopping = asyncio.Event()
    rpcs = HealthRpcs(server, stopping)

    serving = asyncio.run(checked(rpcs))
    server.readiness = Readiness(False, ("a model failed",))
    not_ready = asyncio.run(checked(rpcs))
    server.readiness = Readiness(True)
    stopping.set()
    stopped = asyncio.run(checked(rpcs))

    assert (serving, not_ready, stopped) == (SERVING, NOT_SERVING, NOT_SERVING)


@pytest.mark.parametrize("service", SERVICES)
def test_the_health_of_a_service_is_that_of_the_server(server, service):
    assert asyncio.run(checked(HealthRpcs(server, asyncio.Event()), service)) == SERVING


def test_the_health_of_a_service_that_is_not_served_is_not_found(server):
    with pytest.raises(RpcError) as caught:
        asyncio.run(checked(HealthRpcs(server, asyncio.Event()), "inference.Nothing"))

    assert caught.value.code == Code.NOT_FOUND
    assert "no service 'inference.Nothing'" in caught.value.message


def test_a_watched_service_that_is_not_served_is_unknown_until_the_end(server):
    stopping = asyncio.Event()
    (watch,) = (each for each in HealthRpcs(server, stopping).operations() if each.path.endswith("/Watch"))

    async def messages():
        yield REQUEST(service="inference.Nothing").SerializeToString()

    async def watched():
        statuses = []
        async for message in watch.answer(messages(), None):
            statuses.append(RESPONSE.FromString(message).status)
            stopping.set()
        return statuses

    assert asyncio.run(asyncio.wait_for(watched(), 20)) == [SERVICE_UNKNOWN]


def test_who_watches_is_reported_changes_only_and_of_the_end(server):
    stopping = asyncio.Event()
    rpcs = HealthRpcs(server, stopping, watch_seconds=0.001)
    (watch,) = (each for each in rpcs.operations() if each.path.endswith("/Watch"))

    async def messages():
        yield REQUEST().SerializeToString()

    async def watched():
        statuses = []
        async for message in watch.answer(messages(), None):
            statuses.append(RESPONSE.FromString(message).status)
            if len(statuses) == 1:
                server.readiness = Readiness(False)
            elif len(statuses) == 2:
                server.readiness = Readiness(True)
            else:
                stopping.set()
        return statuses

    assert asyncio.run(asyncio.wait_for(watched(), 20)) == [SERVING, NOT_SERVING, SERVING, NOT_SERVING]
