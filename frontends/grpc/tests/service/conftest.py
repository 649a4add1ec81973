"""A fake server, and a way to ask an RPC of it as a transport would: in bytes."""

import asyncio

import pytest

from naiad.errors import NotFoundError
from naiad.options import LOG_OPTIONS
from naiad.reports import IndexEntry, Readiness
from naiad_grpc.messages import rpcs
from naiad_kit.frontends.log_control import LogControl

MESSAGES = {rpc.name: (rpc.request, rpc.response) for rpc in rpcs()}


class FakeServer:
    """Knows one model, `m`, and records its calls."""

    def __init__(self):
        self.readiness = Readiness(True)
        self.failure = None
        self.counted = []
        self.calls = []
        self.shared_memory = FakeSharedMemory()
        options = {option.name: option.default for option in LOG_OPTIONS}
        self.log_changes = []
        self.logging = LogControl({**options, "log-verbose": 2}, self.log_changes.append)

    def service(self, kind):
        return {"shared-memory": self.shared_memory, "tracing": None, "logging": self.logging}[kind.name]

    def ready(self):
        return self.readiness

    def model_ready(self, name, version=0):
        self._find(name, version)
        if self.failure is not None:
            raise self.failure
        return self.readiness

    def statistics(self, name="", version=0):
        self.calls.append((name, version))
        return self.counted

    async def fresh_index(self, ready=False):
        gone = [] if ready else [IndexEntry("n", 2, "UNAVAILABLE", "unloaded"), IndexEntry("half \ud800")]
        return [IndexEntry("m", 1, "READY"), *gone]

    async def load(self, name, config="", files=None, trusted=True):
        assert not trusted
        self.calls.append(("load", name, config, files))

    async def unload(self, name, unload_dependents=False):
        self.calls.append(("unload", name, unload_dependents))

    def _find(self, name, version):
        if (name, version) not in [("m", 0), ("m", 3)]:
            raise NotFoundError(f"Request for unknown model: '{name}' is not found")


class FakeSharedMemory:
    """Records its calls, and has the regions that a test puts in."""

    def __init__(self):
        self.regions = {"cuda": []}
        self.calls = []

    def status(self, kind, name=""):
        return [each for each in self.regions[kind] if name in ("", each.name)]

    def register_cuda(self, *value):
        self.calls.append(("cuda", *value))


@pytest.fixture
def server():
    return FakeServer()


@pytest.fixture
def ask(server):
    """Ask an RPC of a group: `ask(HealthRpcs, "ModelReady", None, name="m")`; what is in between goes to the group."""

    def ask(group, rpc, /, *more, **fields):
        request, response = MESSAGES[rpc]
        (operation,) = (each for each in group(server, *more).operations() if each.path.endswith(f"/{rpc}"))
        return response.FromString(asyncio.run(operation.answer(request(**fields).SerializeToString(), None)))

    return ask
