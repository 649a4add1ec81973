"""Whether the server and its models can serve, and the standard health service."""

import asyncio

import pytest

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad.reports import Readiness
from naiad_grpc.service.health import HealthRpcs
from naiad_grpc.standard import HEALTH_PACKAGE, standard_class

REQUEST = standard_class(HEALTH_PACKAGE, "HealthCheckRequest")
RESPONSE = standard_class(HEALTH_PACKAGE, "HealthCheckResponse")
SERVING, NOT_SERVING = 1, 2


def test_a_server_that_runs_is_live(ask):
    assert ask(HealthRpcs, "ServerLive", None).live is True


@pytest.mark.parametrize("ready", [True, False])
def test_readiness_is_that_of_the_server(ask, server, ready):
    server.readiness = Readiness(ready, ("because",))

    assert ask(HealthRpcs, "ServerReady", None).ready is ready
    assert ask(HealthRpcs, "ModelReady", None, name="m").ready is ready


def test_a_model_may_be_asked_for_by_version(ask):
    assert ask(HealthRpcs, "ModelReady", None, name="m", version="3").ready


def test_an_unknown_model_is_not_found(ask):
    with pytest.raises(NotFoundError, match="unknown model: 'dream'"):
        ask(HealthRpcs, "ModelReady", None, name="dream")


@pytest.mark.parametrize("version", ["one", "-1", "0", "9" * 30, "¹"])
def test_a_version_that_is_none_is_refused(ask, version):
    with pytest.raises(InvalidArgumentError, match="version should be an integral value > 0"):
        ask(HealthRpcs, "ModelReady", None, name="m", version=version)


async def checked(rpcs):
    (check,) = (each for each in rpcs.operations() if each.path == "/grpc.health.v1.Health/Check")
    answer = await check.answer(REQUEST(service="whatever").SerializeToString(), None)
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


def test_who_watches_is_told_of_changes_only_and_of_the_end(server):
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
