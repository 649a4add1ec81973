"""Servers for the tests of the codec, on a loop whose clock stands still until a test moves it."""

from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from naiad_testing.loops import JumpingLoop, coroutine_tests

from .driven import Drive, DrivenSequences, driven_sequences

pytest_pyfunc_call = coroutine_tests(JumpingLoop)


@pytest.fixture
def servers() -> AsyncExitStack:
    """What ends with the test."""
    return AsyncExitStack()


@pytest.fixture
def drive(servers: AsyncExitStack, tmp_path: Path) -> Drive:
    """Starts a server of one model with that configuration, as `driven_sequences` does; it stops after the test."""

    numbers = count()

    async def start(config: str = "", **settings: Any) -> DrivenSequences:
        root = tmp_path / f"repository{next(numbers)}"
        return await servers.enter_async_context(driven_sequences(root, config, **settings))

    return start
