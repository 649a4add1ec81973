"""Calls from a model to other models of its server, which naiad-model-calls carries.

A call goes through the called model's own checks, scheduler and counters, as any other request does, and its error is
the one that a client would get. Where a call could never be answered, because every instance that could answer it waits
for the caller, it is refused at once with CallRingError instead of waiting for ever.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import NoReturn, Protocol, runtime_checkable

from naiad.backend import ModelContext
from naiad.errors import UnsupportedError
from naiad.extend import ModelService
from naiad.types import Request, Response
from naiad_config.installing import install_command


class Responses(Protocol):
    """The responses to a call, one by one; iterating waits for each and raises the call's error.

    The last one is empty where it only says that the call is over. The called model is held back while many wait to be
    taken. Closing it, or dropping it, takes the request back.
    """

    def __iter__(self) -> Iterator[Response]: ...

    def __next__(self) -> Response: ...

    def begin_next(self) -> "Future[Response | None]":
        """The next response when it is there, None after the last; the error of the call comes as the future's.

        Wait for it before the next one is asked for.
        """

    def cancel(self) -> None:
        """Ask the model to stop: the call ends with RequestCancelledError, unless the model goes on all the same."""

    def close(self) -> None:
        """Say that no more responses are wanted; harmless at the end."""


class ModelCalls(Protocol):
    """Asks other models of the server, or the same one. Every method is for any thread.

    The methods that wait raise UnsupportedError on the event loop's own thread, where a model with the parameter
    `execute_on: event_loop` executes: nothing could answer while it stands still.
    """

    def within(self, requests: Sequence[Request]) -> "ModelCalls":
        """The same for calls made while these requests execute, all of them requests that `execute` was given.

        Call it on the thread that executes them; the result is for any thread.

        Such a call has their deadline (the latest, where all have one), the highest of their priorities and a child of
        the first of their traces, unless it has its own. It is cancelled when the callers of all of them have left.
        """

    def infer(self, request: Request) -> Response:
        """The response to a request. Raises its error."""

    def begin(self, request: Request) -> "Future[Response]":
        """The same without waiting; cancelling the future takes the request back."""

    def stream(self, request: Request) -> Responses:
        """The responses to a request, none, one or many; it has begun when this returns."""

    def ready(self, name: str, version: int = 0) -> bool:
        """Whether a version (0: any) has an instance that can serve."""

    def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model as `Server.load` does, and wait until it is READY.

        Raises InvalidArgumentError, besides what that raises, when the load would wait for the caller's own.
        """

    def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Take a model out of service as `Server.unload` does."""


@runtime_checkable
class ModelCallService(ModelService, Protocol):
    """The service that carries calls from models to other models of its server; its parts are `ModelCalls`."""

    name: str = "model-calls"


def models_of(context: ModelContext) -> ModelCalls:
    """How the model of that context calls other models; every call is refused in a server without naiad-model-calls."""
    calls: ModelCalls | None = context.parts.get(ModelCallService.name)
    return NoModels() if calls is None else calls


class NoModels:
    """The calls of a model that cannot call others. Every method but `within` raises UnsupportedError."""

    def within(self, requests: Sequence[Request]) -> "NoModels":
        """Itself."""
        return self

    def infer(self, request: Request) -> NoReturn:
        """Refused."""
        self._refuse(f"call model '{request.model_name}'")

    begin = stream = infer

    def ready(self, name: str, version: int = 0) -> NoReturn:
        """Refused."""
        self._refuse(f"ask for model '{name}'")

    def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> NoReturn:
        """Refused."""
        self._refuse(f"load model '{name}'")

    def unload(self, name: str, unload_dependents: bool = False) -> NoReturn:
        """Refused."""
        self._refuse(f"unload model '{name}'")

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"a model that no server has loaded cannot {what}, nor one of a server without naiad-model-calls: "
            f"{install_command('naiad-model-calls')}; in a test give its ModelContext "
            "`parts={'model-calls': naiad_testing.calls.FakeModels()}`"
        )
