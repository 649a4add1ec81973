"""Shared part of both adapters over Triton's client library: its calls, synchronous or awaited, as plain values."""

import asyncio
import importlib
import inspect
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from naiad_testing.frontends.adapter import FrontendAdapter
from naiad_testing.frontends.calls import Answer, Call, Input, Output, RefusedError

PATIENCE = 30.0
"""Seconds after which an answer counts as never coming."""


class LibraryAdapter(FrontendAdapter):
    """An adapter over a client of Triton's library; `asynchronous` takes the one for asyncio."""

    module: ClassVar[str]

    def __init__(self, address: str, asynchronous: bool = False) -> None:
        self.address = address
        self._runner = asyncio.Runner() if asynchronous else None
        self._library: ModuleType = importlib.import_module(self.module + (".aio" if asynchronous else ""))
        self._clients: list[Any] = []

    def open_client(self, **options: Any) -> Any:
        """Another client of the library, which is closed with the adapter."""
        make = self._library.InferenceServerClient
        if self._runner is None:
            client = make(self.address, **options)
        else:

            async def opened() -> Any:  # it takes the loop that runs
                return make(self.address, **options)

            client = self._runner.run(opened())
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            self.wait_for(client.close())
        if self._runner is not None:
            self._runner.close()

    def wait_for(self, value: Any) -> Any:
        """The value, or what the coroutine returns."""
        if self._runner is None or not inspect.isawaitable(value):
            return value

        async def awaited() -> Any:
            return await value

        return self._runner.run(awaited())

    def call(self, client: Any, method: str, *arguments: Any, **named: Any) -> Any:
        """What a method of the client returns. Its errors are RefusedError; without an answer the status is empty."""
        from tritonclient.utils import InferenceServerException

        try:
            return self.wait_for(getattr(client, method)(*arguments, **named))
        except InferenceServerException as error:
            raise refused(error) from None
        except self.transport_errors as error:
            raise RefusedError("", str(error)) from None

    @property
    def transport_errors(self) -> tuple[type[Exception], ...]:
        """The other errors that the library raises where no answer comes."""
        return (OSError,)

    def tensors(self, call: Call) -> dict[str, Any]:
        """The inputs and outputs of a request, as arguments of the library."""
        outputs = [self._output(each) for each in call.outputs]
        return {"inputs": [self._input(each) for each in call.inputs], "outputs": outputs or None}

    def _input(self, tensor: Input) -> Any:
        written = self._library.InferInput(tensor.name, tensor.wire_shape, tensor.wire_datatype)
        if tensor.array is not None:
            written.set_shape(list(tensor.array.shape))
            written.set_data_from_numpy(tensor.array)
            written.set_shape(tensor.wire_shape)
        if tensor.location is not None:
            at = tensor.location
            written.set_shared_memory(at.region, at.byte_size, offset=at.offset)
        return written

    def _output(self, output: Output) -> Any:
        written = self._library.InferRequestedOutput(output.name, class_count=output.classes)
        if output.location is not None:
            at = output.location
            written.set_shared_memory(at.region, at.byte_size, offset=at.offset)
        return written


def arguments_of(call: Call) -> dict[str, Any]:
    """What a request says beside its tensors, as arguments of the library."""
    return {
        "model_version": call.version,
        "request_id": call.id,
        "sequence_id": call.sequence_id,
        "sequence_start": call.sequence_start,
        "sequence_end": call.sequence_end,
        "priority": call.priority,
        "timeout": call.timeout,
        "parameters": dict(call.parameters) or None,
    }


def answer_of(result: Any, response: Mapping[str, Any], call: Call) -> Answer:
    """The answer of a result of the library, whose response is that document."""
    shared = {each.name for each in call.outputs if each.location is not None}
    listed = response.get("outputs", [])
    return Answer(
        response["model_name"],
        response["model_version"],
        response.get("id", ""),
        {each["name"]: None if each["name"] in shared else _array(result.as_numpy(each["name"])) for each in listed},
        {each["name"]: each["datatype"] for each in listed},
        response.get("parameters", {}),
    )


def refused(error: Any) -> RefusedError:
    """An error of the library as one of the suite."""
    return RefusedError(str(error.status()).removeprefix("StatusCode."), error.message())


def as_lists(settings: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """Trace settings, each as a list."""
    return {name: [value] if isinstance(value, str) else list(value) for name, value in settings.items()}


def _array(array: np.ndarray) -> np.ndarray:
    """Strings as bytes, also where they came as text."""
    if array.dtype == object:
        flat = [each.encode() if isinstance(each, str) else each for each in array.ravel()]
        strings = np.empty(len(flat), object)
        strings[:] = flat
        return strings.reshape(array.shape)
    return array
