"""Clients of a server in the test's own process: arrays in, arrays out."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from naiad.errors import InvalidArgumentError, NaiadError
from naiad.types import Request, Response
from naiad_tensors.datatypes import bf16_to_fp32, fp32_to_bf16
from naiad_tensors.tensors import Tensor

if TYPE_CHECKING:
    from naiad.server import ServerApi

_T = TypeVar("_T")


class ModelClient:
    """Sends requests to one model, with arrays in and arrays out."""

    def __init__(self, client: "Client", name: str, version: int = 0) -> None:
        self._client = client
        self._name = name
        self._version = version

    def infer(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """The outputs for these inputs; raises the request's error.

        An input is anything numpy takes, and gets the datatype that the model declares. BF16 is float32 here.
        """
        return _arrays(self._client.send(self.request(**inputs)))

    def infer_all(self, /, *inputs: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
        """The outputs for several requests that are sent at once, so that they may share a batch; raises an error."""
        outcomes = self._client.send_all([self.request(**each) for each in inputs])
        for outcome in outcomes:
            if isinstance(outcome, NaiadError):
                raise outcome
        return [_arrays(outcome) for outcome in outcomes if isinstance(outcome, Response)]

    def stream(self, /, **inputs: Any) -> Generator[dict[str, np.ndarray], None, None]:
        """The outputs of each response, one by one, no faster than they are taken; raises the request's error.

        Raises the error of a single response too. Closing the generator is the caller going away.
        """
        with closing(self._client.responses(self.request(**inputs))) as responses:
            for response in responses:
                if response.error is not None:
                    raise response.error
                if not response.is_empty:
                    yield _arrays(response)

    def request(self, /, **inputs: Any) -> Request:
        """The request that `infer` sends; set `parameters`, `id` and the like before `Client.send`."""
        declared = self._client.call(lambda server: server.model_metadata(self._name, self._version))
        datatypes = {each.name: each.datatype for each in declared.inputs}
        tensors = {name: _tensor(name, value, datatypes.get(name, "")) for name, value in inputs.items()}
        return Request(self._name, tensors, version=self._version)


class Client:
    """Talks to the server of `serve`, from any thread but its own."""

    def __init__(self, server: "ServerApi", loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self._loop = loop

    def __getitem__(self, name: str) -> ModelClient:
        return ModelClient(self, name)

    def infer(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """`ModelClient.infer` of the only model. Raises InvalidArgumentError when there are several."""
        return self._only().infer(**inputs)

    def infer_all(self, /, *inputs: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
        """`ModelClient.infer_all` of the only model."""
        return self._only().infer_all(*inputs)

    def stream(self, /, **inputs: Any) -> Generator[dict[str, np.ndarray], None, None]:
        """`ModelClient.stream` of the only model."""
        return self._only().stream(**inputs)

    def request(self, /, **inputs: Any) -> Request:
        """`ModelClient.request` of the only model."""
        return self._only().request(**inputs)

    def send(self, request: Request) -> Response:
        """The response to a request; raises its error."""
        return self.wait_for(lambda server: server.infer(request))

    def responses(self, request: Request) -> Generator[Response, None, None]:
        """The responses to a request as they come, the final one last, also when it is empty; raises its error.

        Closing the generator is the caller going away.
        """
        stream = self.call(lambda server: server.stream(request))
        try:
            while (response := self.wait_for(lambda server: _next(stream))) is not None:
                yield response
        finally:
            if not self._loop.is_closed():
                self.wait_for(lambda server: stream.aclose())

    def send_all(self, requests: Sequence[Request]) -> list[Response | NaiadError]:
        """The responses or errors of requests that are sent at once, in their order."""

        async def gathered(server: "ServerApi") -> list[Response | NaiadError]:
            return await asyncio.gather(*(_outcome(server, request) for request in requests))

        return self.wait_for(gathered)

    def call(self, action: "Callable[[ServerApi], _T]") -> _T:
        """Something that the server answers at once (`lambda server: server.statistics()`), asked on its own thread."""

        async def call(server: "ServerApi") -> _T:
            return action(server)

        return self.wait_for(call)

    def wait_for(self, action: "Callable[[ServerApi], Coroutine[Any, Any, _T]]") -> _T:
        """Something that the server is awaited for (`lambda server: server.load("name")`)."""
        return asyncio.run_coroutine_threadsafe(action(self.server), self._loop).result()

    def _only(self) -> ModelClient:
        names = sorted({entry.name for entry in self.call(lambda server: server.index(ready=True))})
        if len(names) != 1:
            raise InvalidArgumentError(
                f"the models are {', '.join(names) or 'none'}; say which: client['name'].infer(...)"
            )
        return self[names[0]]


async def _outcome(server: "ServerApi", request: Request) -> Response | NaiadError:
    try:
        return await server.infer(request)
    except NaiadError as error:
        return error


async def _next(stream: AsyncGenerator[Response, None]) -> Response | None:
    return await anext(stream, None)


def _tensor(name: str, value: Any, datatype: str) -> Tensor:
    if datatype == "BF16":
        return Tensor.of(name, fp32_to_bf16(np.asarray(value, dtype=np.float32)), "BF16")
    return Tensor.of(name, value, datatype)


def _arrays(response: Response) -> dict[str, np.ndarray]:
    return {
        name: bf16_to_fp32(tensor.array) if tensor.datatype == "BF16" else tensor.array
        for name, tensor in response.outputs.items()
    }
