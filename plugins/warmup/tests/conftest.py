"""Tests that are coroutines run on an event loop of their own, whose clock they can move on."""

import asyncio
import inspect
from pathlib import Path

import pytest

from naiad_testing.backends import FakeBackend

from .loops import JumpingLoop


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    """A backend with the model m in the repository."""
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    return backend
