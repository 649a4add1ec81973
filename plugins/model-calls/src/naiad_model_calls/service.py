"""The service that carries calls between models, and the calls of one model version."""

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from naiad.errors import NaiadError, ShuttingDownError
from naiad.extend import LoadedVersion
from naiad.server import ServerApi
from naiad.types import Request, Response
from naiad_config import ModelConfig
from naiad_kit.calls import Responses
from naiad_model_calls.call_scope import CallingModel
from naiad_model_calls.loop_bridge import LoopBridge


class ModelCallCarrier:
    """Carries the calls of all models of a server; see `naiad_kit.calls.ModelCallService`."""

    name = "model-calls"

    def __init__(self) -> None:
        self._bridge: LoopBridge | None = None

    async def start(self, server: ServerApi) -> None:
        """Carry calls from now on."""
        self._bridge = LoopBridge(server)

    async def stop(self, seconds: float) -> None:
        """Fail the calls that are still open; there is nothing to wait for."""
        if self._bridge is not None:
            self._bridge.close()

    def part_of(self, config: ModelConfig) -> "VersionCalls":
        """The calls of a version of that model, which is about to be loaded."""
        if self._bridge is None:
            raise ShuttingDownError("the server has not started, and carries no calls between models")
        return VersionCalls(self._bridge, CallingModel(config.name))


class VersionCalls:
    """The calls of one version, perhaps those made for some of its requests: see `naiad_kit.calls.ModelCalls`."""

    def __init__(self, bridge: LoopBridge, model: CallingModel, requests: Sequence[Request] = ()) -> None:
        self._bridge = bridge
        self._model = model
        self._find_scope = functools.partial(model.scope_of, requests)

    def within(self, requests: Sequence[Request]) -> "VersionCalls":
        """The same for calls made while these requests execute."""
        return VersionCalls(self._bridge, self._model, tuple(requests))

    def infer(self, request: Request) -> Response:
        """The response to a request."""
        self._bridge.check_may_wait()
        return self.begin(request).result()

    def begin(self, request: Request) -> "Future[Response]":
        """The same without waiting."""
        return self._bridge.begin(request, self._find_scope)

    def stream(self, request: Request) -> Responses:
        """The responses to a request."""
        return self._bridge.stream(request, self._find_scope)

    def ready(self, name: str, version: int = 0) -> bool:
        """Whether a version can serve."""

        async def ready() -> bool:
            try:
                return self._bridge.server.model_ready(name, version).ready
            except NaiadError:
                return False

        return self._bridge.wait_for(ready)

    def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model."""
        load, within = self._bridge.server.load, self._model.loading
        self._bridge.wait_for(lambda: load(name, config, files, within=within))

    def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Take a model out of service."""
        unload, within = self._bridge.server.unload, self._model.loading
        self._bridge.wait_for(lambda: unload(name, unload_dependents, within=within))

    def loaded(self, version: LoadedVersion) -> None:
        """This is the version that calls, and it is loaded."""
        self._model.version = version

    def close(self) -> None:
        """Nothing to free: open calls end with the requests that they are made for."""
