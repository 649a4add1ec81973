"""A real Redis server for the tests of this plugin; without one they are skipped, saying what is missing."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .servers import RedisServer

MISSING = "there is no redis-server here; on Debian and Ubuntu: apt-get install redis-server"


@pytest.fixture
def start_redis(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Start servers with these options; they end with the test."""
    if shutil.which("redis-server") is None:
        pytest.skip(MISSING)
    with ExitStack() as stack:

        def start(*options: str, port: int = 0) -> RedisServer:
            return stack.enter_context(RedisServer(tmp_path, *options, port=port))

        yield start


@pytest.fixture
def redis_server(start_redis: Callable[..., RedisServer]) -> RedisServer:
    """A server without a password."""
    return start_redis()
