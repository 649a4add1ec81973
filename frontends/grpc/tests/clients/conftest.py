"""Clients that are programs of others, against our own transport: they run beside the server, in processes."""

import asyncio
import shutil

import pytest
import uvloop

from naiad_grpc.service.operations import UnaryOperation

from ..connections.conftest import Calls as OwnCalls
from ..connections.conftest import listening

__all__ = ["listening"]


class Calls(OwnCalls):
    """The RPCs of the other tests, and one that gives the caller's metadata back."""

    def operations(self):
        return [*super().operations(), UnaryOperation("/t/metadata", "inference", self.metadata)]

    async def metadata(self, _message, context):
        return repr([pair for pair in context.invocation_metadata() if pair[0].startswith("x-")]).encode()


def needed(program, package):
    """The path of a program; skips the test where it is not installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed (Debian and Ubuntu: apt-get install {package})")
    return path


async def run_program(*command, **more):
    """The standard output of a program; its standard error is in the failure when it fails."""
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, **pipes, **more)
    try:
        out, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, (command, out[-2000:], complaint[-2000:])
    return out


@pytest.fixture
def run():
    """Run a coroutine on uvloop, which the server has."""

    def run(main):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(asyncio.wait_for(main, 100))

    return run
