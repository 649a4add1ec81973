"""Tests that are coroutines run on an event loop of their own, whose clock they can move on."""

import asyncio
import inspect

import pytest

from .loops import JumpingLoop


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(pyfuncitem.obj(**arguments))
    return True
