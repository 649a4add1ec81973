"""The parameter `server` of a user's function: calls to the other models of the server, arrays in, arrays out."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import numpy as np

    from naiad.types import Request, Response
    from naiad_kit.calls import ModelCalls

    Outputs = dict[str, np.ndarray[Any, Any]]


class Server:
    """For a function written as `def`: its methods wait. Calls raise the error of the called model.

    A model is named, with its inputs as keywords: arrays, or anything numpy takes whose dtype is the one that the model
    declares, or `naiad.Tensor`s. A `naiad.Request` in place of the name says everything else: version, parameters,
    sequence, and the outputs wanted. BF16 is float32 on both sides, where a `Tensor` says that it is BF16.
    """

    __slots__ = ("_models",)

    def __init__(self, models: "ModelCalls") -> None:
        self._models = models

    def infer(self, model: "str | Request", /, **inputs: Any) -> "Outputs":
        """The outputs of a model for these inputs."""
        return _arrays(self._models.infer(_request(model, inputs)))

    def stream(self, model: "str | Request", /, **inputs: Any) -> "Iterator[Outputs]":
        """The outputs of each response, one by one; the model waits while they are not taken."""
        responses = self._models.stream(_request(model, inputs))
        try:
            for response in responses:
                if not response.is_empty:
                    yield _arrays(response)
        finally:
            responses.close()

    def ready(self, model: str, version: int = 0) -> bool:
        """Whether a version of that model (0: any) can serve."""
        return self._models.ready(model, version)

    def load(self, model: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model, and wait until it is READY; with the control mode `explicit` alone."""
        self._models.load(model, config, files)

    def unload(self, model: str) -> None:
        """Take a model out of service; with the control mode `explicit` alone."""
        self._models.unload(model)


class AsyncServer:
    """The same for a function written as `async def`: its methods are awaited, and others run meanwhile.

    A call is taken back when the task that awaits it is cancelled.
    """

    __slots__ = ("_models",)

    def __init__(self, models: "ModelCalls") -> None:
        self._models = models

    async def infer(self, model: "str | Request", /, **inputs: Any) -> "Outputs":
        """The outputs of a model for these inputs."""
        import asyncio

        return _arrays(await asyncio.wrap_future(self._models.begin(_request(model, inputs))))

    async def stream(self, model: "str | Request", /, **inputs: Any) -> "AsyncIterator[Outputs]":
        """The outputs of each response, one by one; the model waits while they are not taken."""
        import asyncio

        responses = self._models.stream(_request(model, inputs))
        try:
            while (response := await asyncio.wrap_future(responses.begin_next())) is not None:
                if not response.is_empty:
                    yield _arrays(response)
        finally:
            responses.close()

    async def ready(self, model: str, version: int = 0) -> bool:
        """Whether a version of that model (0: any) can serve."""
        import asyncio

        return await asyncio.to_thread(self._models.ready, model, version)

    async def load(self, model: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model, and wait until it is READY; with the control mode `explicit` alone."""
        import asyncio

        await asyncio.to_thread(self._models.load, model, config, files)

    async def unload(self, model: str) -> None:
        """Take a model out of service; with the control mode `explicit` alone."""
        import asyncio

        await asyncio.to_thread(self._models.unload, model)


def _request(model: "str | Request", inputs: Mapping[str, Any]) -> "Request":
    from dataclasses import replace

    from naiad.types import Request

    tensors = {name: _tensor(name, value) for name, value in inputs.items()}
    if isinstance(model, Request):
        return replace(model, inputs={**model.inputs, **tensors}) if tensors else model
    return Request(model, tensors)


def _tensor(name: str, value: Any) -> Any:
    from naiad_tensors.tensors import Tensor

    if isinstance(value, Tensor):
        return Tensor(name, value.datatype, value.shape, value.payload)
    return Tensor.of(name, value)


def _arrays(response: "Response") -> "Outputs":
    from naiad_tensors.datatypes import bf16_to_fp32

    if response.error is not None:
        raise response.error
    return {
        name: cast("Any", bf16_to_fp32(tensor.array) if tensor.datatype == "BF16" else tensor.array)
        for name, tensor in response.outputs.items()
    }
