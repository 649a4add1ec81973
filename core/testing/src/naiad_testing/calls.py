"""Fake of model calls: the other models of a server in memory, for tests of models that call them."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from naiad.errors import NaiadError, NotFoundError, UnsupportedError
from naiad.types import Request, Response

_T = TypeVar("_T")

FakeAnswer = Response | Sequence[Response]
"""What a fake model answers a request with: a response, or several of a model that is decoupled."""


class FakeModels:
    """Give it as `ModelContext(..., parts={"model-calls": FakeModels(double=lambda request: Response(...))})`.

    Each model is a function from a request to its response, or to a sequence of them where it is decoupled; a
    NaiadError that it raises is the error of the call. `requests` are the requests, in order, and `outer` those that
    each was made within; `events` tells of loads and unloads. Any thread may use all of it.
    """

    def __init__(self, **models: Callable[[Request], FakeAnswer]) -> None:
        self.models: dict[str, Callable[[Request], FakeAnswer]] = dict(models)
        self.requests: list[Request] = []
        self.outer: list[Sequence[Request]] = []
        self.events: list[str] = []
        self._within: Sequence[Request] = ()
        self._lock = threading.Lock()

    def within(self, requests: Sequence[Request]) -> "FakeModels":
        """The same models, asked within these requests."""
        bound = FakeModels()
        bound.models, bound.requests, bound.outer, bound.events = self.models, self.requests, self.outer, self.events
        bound._lock, bound._within = self._lock, requests
        return bound

    def infer(self, request: Request) -> Response:
        """The model's one response. Raises UnsupportedError for a model that answers with a sequence."""
        answer = self._answer(request)
        if isinstance(answer, Response):
            return answer
        raise UnsupportedError(f"model '{request.model_name}' is decoupled; ask it with stream")

    def begin(self, request: Request) -> "Future[Response]":
        """The same, as a future that is done."""
        return _done(lambda: self.infer(request))

    def stream(self, request: Request) -> "FakeResponses":
        """The model's responses. An error comes when the first is taken."""
        return FakeResponses(lambda: self._answer(request))

    def ready(self, name: str, version: int = 0) -> bool:
        """Whether there is such a model."""
        return name in self.models

    def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Note it. Raises NotFoundError for a model that is not there."""
        if name not in self.models:
            raise NotFoundError(f"there is no model '{name}' to load")
        self.events.append(f"load {name}")

    def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Note it, and forget the model."""
        self.events.append(f"unload {name}")
        self.models.pop(name, None)

    def _answer(self, request: Request) -> FakeAnswer:
        with self._lock:
            self.requests.append(request)
            self.outer.append(self._within)
        model = self.models.get(request.model_name)
        if model is None:
            raise NotFoundError(f"Request for unknown model: '{request.model_name}' is not found")
        return model(request)


class FakeResponses:
    """The responses of a FakeModels model.

    `closed` says that no more were wanted, `cancelled` that the model was asked to stop, which it ignores.
    """

    def __init__(self, answer: Callable[[], FakeAnswer]) -> None:
        self.closed = self.cancelled = False
        self._answer = answer
        self._remaining: Iterator[Response] | None = None

    def __iter__(self) -> Iterator[Response]:
        return self

    def __next__(self) -> Response:
        if self.closed:
            raise StopIteration
        if self._remaining is None:
            answer = self._answer()
            responses = [answer] if isinstance(answer, Response) else answer
            self._remaining = iter(responses)
        return next(self._remaining)

    def begin_next(self) -> "Future[Response | None]":
        """The next response, None after the last, as a future that is done."""
        return _done(lambda: next(self, None))

    def cancel(self) -> None:
        """Ask the model to stop."""
        self.cancelled = True

    def close(self) -> None:
        """Want no more."""
        self.closed = True


def _done(ask: Callable[[], _T]) -> "Future[_T]":
    future: Future[_T] = Future()
    try:
        future.set_result(ask())
    except NaiadError as error:
        future.set_exception(error)
    return future
