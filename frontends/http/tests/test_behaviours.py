"""The HTTP frontend does what every frontend does, through both clients of Triton's library."""

from functools import partial

import pytest

import naiad_http
import naiad_shared_memory
import naiad_tracing
from naiad_testing.frontends import UNARY, Stage, behaviours
from naiad_testing.frontends.access import ACCESS
from naiad_testing.frontends.http_adapter import HttpAdapter

PLUGINS = [naiad_http, naiad_shared_memory, naiad_tracing]

# the asynchronous client leaves connections open that the server has closed, and sends large bodies in one piece
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """The stage of the suite, with the client that blocks."""
    with Stage(HttpAdapter, HttpAdapter, PLUGINS, tmp_path_factory.mktemp("stage")) as opened:
        yield opened


@pytest.fixture(scope="module")
def asynchronous(tmp_path_factory):
    """The same with the client for asyncio."""
    connect = partial(HttpAdapter, asynchronous=True)
    with Stage(connect, HttpAdapter, PLUGINS, tmp_path_factory.mktemp("stage")) as opened:
        yield opened


@pytest.mark.parametrize("behaviour", behaviours(), ids=str)
def test_it_behaves_like_every_frontend(stage, behaviour):
    behaviour.check(stage)


@pytest.mark.parametrize("behaviour", behaviours(*UNARY, ACCESS), ids=str)
def test_the_client_for_asyncio_gets_the_same(asynchronous, behaviour):
    behaviour.check(asynchronous)
