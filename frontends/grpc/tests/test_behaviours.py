"""The gRPC frontend does what every frontend does, through both clients of Triton's library."""

from functools import partial

import pytest

import naiad_grpc
import naiad_shared_memory
import naiad_tracing
from naiad_testing.frontends import UNARY, Stage, behaviours
from naiad_testing.frontends.access import ACCESS
from naiad_testing.frontends.grpc_adapter import GrpcAdapter

PLUGINS = [naiad_grpc, naiad_shared_memory, naiad_tracing]


@pytest.fixture(scope="module")
def stage(tmp_path_factory, transport):
    """The stage of the suite, with the client that blocks."""
    options = {"grpc-transport": transport}
    with Stage(GrpcAdapter, GrpcAdapter, PLUGINS, tmp_path_factory.mktemp("stage"), options) as opened:
        yield opened


@pytest.fixture(scope="module")
def asynchronous(tmp_path_factory):
    """The same with the client for asyncio, and the transport of the default."""
    connect = partial(GrpcAdapter, asynchronous=True)
    with Stage(connect, GrpcAdapter, PLUGINS, tmp_path_factory.mktemp("stage")) as opened:
        yield opened


@pytest.mark.parametrize("behaviour", behaviours(), ids=str)
def test_it_behaves_like_every_frontend(stage, behaviour):
    behaviour.check(stage)


@pytest.mark.parametrize("behaviour", behaviours(*UNARY, ACCESS), ids=str)
def test_the_client_for_asyncio_gets_the_same(asynchronous, behaviour):
    behaviour.check(asynchronous)
