"""The four clients of Triton's library, driven alike: coroutines are run to their end, and messages come as JSON."""

import asyncio
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio

from ..running import PATIENCE

MODULES: dict[str, ModuleType] = {
    "http": tritonclient.http,
    "http.aio": tritonclient.http.aio,
    "grpc": tritonclient.grpc,
    "grpc.aio": tritonclient.grpc.aio,
}
"""Where each client is."""

KINDS = {
    "client": tuple(MODULES),
    "http_client": ("http",),
}
"""The fixtures by which tests get clients, and the kinds that each stands for."""


class Driven:
    """A client; its methods are called without `await`, and those that can answer as JSON do."""

    def __init__(self, kind: str, address: str, client: Any, run: Callable[[Any], Any]) -> None:
        self.kind = kind
        self.address = address
        self.itself = client
        self.run = run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.itself, name)
        as_json = {"as_json": True} if "as_json" in inspect.signature(method).parameters else {}

        def call(*arguments: Any, **named: Any) -> Any:
            answer = method(*arguments, **as_json, **named)
            return self.run(answer) if inspect.isawaitable(answer) else answer

        return call

    @property
    def is_web(self) -> bool:
        return self.kind.startswith("http")

    def tensor(self, name: str, array: np.ndarray, datatype: str = "FP32", **how: Any) -> Any:
        """An input with that array."""
        model_input = self.shaped(name, array.shape, datatype)
        model_input.set_data_from_numpy(array, **how)
        return model_input

    def shaped(self, name: str, shape: tuple[int, ...], datatype: str = "FP32") -> Any:
        """An input without content."""
        return MODULES[self.kind].InferInput(name, list(shape), datatype)

    def output(self, name: str, **how: Any) -> Any:
        """An output to ask for."""
        return MODULES[self.kind].InferRequestedOutput(name, **how)


def connect(kind: str, http_port: int, grpc_port: int, runner: asyncio.Runner, **options: Any) -> Driven:
    """A client of that kind; the asynchronous ones live on the runner's loop."""
    address = f"127.0.0.1:{http_port if kind.startswith('http') else grpc_port}"
    if kind == "http":
        options = {"network_timeout": PATIENCE, "connection_timeout": PATIENCE} | options
    client = MODULES[kind].InferenceServerClient

    async def create() -> Any:
        return client(address, **options)

    itself = runner.run(create()) if kind.endswith("aio") else client(address, **options)
    return Driven(kind, address, itself, runner.run)
