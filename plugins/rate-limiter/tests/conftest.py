"""A repository of models for each test, and an event loop for tests that are coroutines."""

import asyncio
import inspect
from pathlib import Path

import pytest

from .models import Models


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """A repository to add models to."""
    return Models(tmp_path)
