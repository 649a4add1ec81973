"""Model calls (BLS) of a TritonPythonModel: `exec`, `async_exec`, and the iterator over decoupled responses."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from typing import TypeVar

from naiad import types
from naiad.errors import ModelNotReadyError, NaiadError, NotFoundError, UnsupportedError
from naiad_custom.triton.errors import as_triton_error
from naiad_custom.triton.response import InferenceResponse
from naiad_custom.triton.suspension import may_suspend, wait_for
from naiad_custom.triton.tensor import received
from naiad_kit.calls import ModelCalls, Responses

_T = TypeVar("_T")


class ResponseIterator:
    """The responses of a call with `decoupled=True`, for `for` and, in an `async def`, for `async for`.

    The last one is empty where the model sends its final flag alone; an error that ends the call is its last response.
    The called model waits while they are not taken. In an `async def execute` other tasks go on while one is awaited,
    in a plain `for` as well.
    """

    def __init__(self, responses: Responses, model: str) -> None:
        self._responses = responses
        self._model = model
        self._is_over = False

    def __iter__(self) -> Iterator[InferenceResponse]:
        return self

    def __next__(self) -> InferenceResponse:
        if self._is_over:
            raise StopIteration
        try:
            response = wait_for(self._responses.begin_next()) if may_suspend() else next(self._responses, None)
        except NaiadError as error:
            return self._ended_by(error)
        if response is None:
            raise StopIteration
        return response_of(response)

    def next(self) -> InferenceResponse:
        """The next response. Raises StopIteration after the last."""
        return next(self)

    def cancel(self) -> None:
        """Ask the model to stop, which it sees by `is_cancelled`.

        The last response is an error with the code CANCELLED, unless the model goes on: what it sends is still there.
        """
        self._responses.cancel()

    def __aiter__(self) -> AsyncIterator[InferenceResponse]:
        return self

    async def __anext__(self) -> InferenceResponse:
        if self._is_over:
            raise StopAsyncIteration
        try:
            response = await asyncio.wrap_future(self._responses.begin_next())
        except NaiadError as error:
            return self._ended_by(error)
        if response is None:
            raise StopAsyncIteration
        return response_of(response)

    def _ended_by(self, error: NaiadError) -> InferenceResponse:
        self._is_over = True
        return failure_of(error, self._model)


def executed(models: ModelCalls, request: types.Request) -> InferenceResponse:
    """The response to a request; one with an error where the call failed."""
    try:
        return response_of(wait_for(models.begin(request)) if may_suspend() else models.infer(request))
    except NaiadError as error:
        return failure_of(error, request.model_name)


def streamed(models: ModelCalls, request: types.Request) -> ResponseIterator:
    """The responses to a request. Raises TritonModelException when the server has stopped."""
    return ResponseIterator(models.stream(request), request.model_name)


def begun(models: ModelCalls, request: types.Request) -> "asyncio.Future[InferenceResponse]":
    """The response to a request, on the running event loop; the call has begun when this returns."""
    return asyncio.ensure_future(_answered(models.begin(request), request.model_name))


def at_once(result: _T) -> "asyncio.Future[_T]":
    """A future that is done."""
    future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future


async def _answered(begun: "Future[types.Response]", model: str) -> InferenceResponse:
    try:
        return response_of(await asyncio.wrap_future(begun))
    except NaiadError as error:
        return failure_of(error, model)


def response_of(response: types.Response) -> InferenceResponse:
    """The kernel's response as a model sees it."""
    if response.error is not None:
        return failure_of(response.error, response.model_name)
    converted = InferenceResponse([received(name, tensor) for name, tensor in response.outputs.items()])
    converted._parameters = response.parameters
    return converted


def failure_of(error: NaiadError, model: str) -> InferenceResponse:
    """A response that says why a call failed, with the kind of the error and in the words that models look for.

    The error loses its traceback: its frames hold the request, the response and, in the end, the error itself.
    """
    error.with_traceback(None)
    message = f"{error}"
    if isinstance(error, NotFoundError | ModelNotReadyError) and f"'{model}'" in message:
        error = type(error)(f"Failed for execute the inference request. Model '{model}' is not ready. {message}")
    elif isinstance(error, UnsupportedError) and "decoupled transaction policy" in message and f"'{model}'" in message:
        error = UnsupportedError(
            f"Model {model} is using the decoupled. The current BLS request call doesn't support models using the "
            "decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls "
            "for decoupled models."
        )
    return InferenceResponse(error=as_triton_error(error))
