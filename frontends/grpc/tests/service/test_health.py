"""Versions of models whose readiness is asked for, and the standard health service."""

import asyncio

import pytest

from naiad.errors import InvalidArgumentError
from naiad.reports import Readiness
from naiad_grpc.messages import HEALTH_PACKAGE, message_class
from naiad_grpc.service.health import HealthRpcs

REQUEST = message_class("HealthCheckRequest", HEALTH_PACKAGE)
RESPONSE = message_class("HealthCheckResponse", HEALTH_PACKAGE)
SERVING, NOT_SERVING = 1, 2


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
